// Products, norms and activations that ONNX Runtime's optimizer fuses.
#include "import/onnx/operators/contrib.h"

#include <cmath>

#include "import/common/build.h"
#include "import/onnx/operators/list.h"
#include "import/onnx/operators/window.h"
#include "ops/require.h"

namespace hone::onnx {

namespace {

Value added(Value x, Value bias) { return plus(x, bias); }

// ==== activations

Values gelu_of_sum(NodeContext& c) {
  Value x = c.in(0);
  if (c.has(1)) x = added(x, c.in(1));
  return {ops::gelu(x)};
}

Values fast_gelu(NodeContext& c) {
  Value x = c.in(0);
  if (c.has(1)) x = added(x, c.in(1));
  return {ops::gelu_tanh(x)};
}

Values quick_gelu(NodeContext& c) {
  Value x = c.in(0);
  return {x * ops::sigmoid(x * c.real("alpha", 1.702))};
}

// The activation of a fused product or convolution, by name; parameters in that operator's order.
Value activated(NodeContext& c, Value y, std::string_view name, const std::vector<double>& given) {
  auto number = [&](std::size_t i, double fallback) {
    return i < given.size() ? given[i] : fallback;
  };
  auto clamped = [&](Value v, double low, double high) {
    return ops::minimum(ops::maximum(v, constant_like(v, low)), constant_like(v, high));
  };
  if (name.empty()) return y;
  if (name == "Relu") return ops::relu(y);
  if (name == "Sigmoid") return ops::sigmoid(y);
  if (name == "Tanh") return ops::tanh(y);
  if (name == "Gelu") return ops::gelu(y);
  if (name == "LeakyRelu") return ops::leaky_relu(y, {{"alpha", number(0, double{0.01f})}});
  if (name == "Clip") return clamped(y, number(0, -HUGE_VAL), number(1, HUGE_VAL));
  if (name == "HardSigmoid") return clamped(y * number(0, double{0.2f}) + number(1, 0.5), 0, 1);
  c.unsupported(cat("activation '", name, "' is not supported"));
}

// ==== products

// The first axis moved after the batch axes: [d0, b.., k] to [b.., d0, k].
Value batches_first(Value x) {
  Axes perm;
  for (int i = 1; i + 1 < x.rank(); ++i) perm.push_back(i);
  perm.push_back(0);
  perm.push_back(x.rank() - 1);
  return transpose_by(x, perm);
}

Value matrix(NodeContext& c, std::size_t input, std::string_view batch, std::string_view last) {
  Value x = c.in(input);
  const bool moves = c.flag(batch), turns = c.flag(last);
  if (moves && x.rank() > 2) x = batches_first(x);
  return turns && x.rank() > 1 ? transpose_matrix(x) : x;
}

Values fused_matmul(NodeContext& c) {
  Value y =
      ops::matmul(matrix(c, 0, "transBatchA", "transA"), matrix(c, 1, "transBatchB", "transB"));
  const double alpha = c.real("alpha", 1);
  return {alpha == 1 ? y : y * alpha};
}

Values fused_gemm(NodeContext& c) {
  Value a = c.in(0), b = c.in(1);
  if (a.rank() != 2 || b.rank() != 2)
    c.fail(cat("the inputs are ", a.type(), " and ", b.type(), ", expected two matrices"));
  if (c.flag("transA")) a = transpose_matrix(a);
  if (c.flag("transB")) b = transpose_matrix(b);
  const double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  Value y = ops::matmul(a, b);
  if (alpha != 1) y = y * alpha;
  if (c.has(2)) y = y + broadcast_to(beta == 1 ? c.in(2) : c.in(2) * beta, y.shape());
  std::vector<double> numbers;
  for (std::string_view name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (c.has_attribute(name)) numbers.push_back(c.real(name, 0));
  return {activated(c, y, c.text("activation", ""), numbers)};
}

Values fused_conv(NodeContext& c) {
  Value y = convolved(c, c.in(0), c.in(1));
  if (c.has(2)) y = y + along_channels(c.in(2), y.shape());
  if (c.has(3)) y = plus(y, c.in(3));
  std::vector<double> numbers;
  if (auto given = c.reals("activation_params")) numbers.assign(given->begin(), given->end());
  return {activated(c, y, c.text("activation", ""), numbers)};
}

// A matrix stored in blocks of `block` low-bit numbers along its depth: f(x) times its transpose.
Values matmul_in_bits(NodeContext& c) {
  const std::int64_t depth = c.integer("K", 0), width = c.integer("N", 0),
                     bits = c.integer("bits", 4), block = c.integer("block_size", 0);
  c.ignore("accuracy_level");
  if (bits != 2 && bits != 4 && bits != 8)
    c.unsupported(cat("attribute 'bits' is ", bits, ", expected 2, 4 or 8"));
  if (depth < 1 || width < 1 || block < 1)
    c.fail(cat("K is ", depth, ", N is ", width, " and block_size is ", block,
               ", expected positive integers"));
  const std::int64_t blocks = (depth + block - 1) / block, per_byte = 8 / bits;
  const DType real = c.in(0).dtype();
  // Unpacks [n, bytes] to [n, numbers], low bits first.
  auto unpacked = [&](Value v, std::int64_t count) {
    v = reshape_to(v, {width, floor_div(v.shape().count(), width), 1});
    Value parts = cast_to(v, DType::i32);
    Array shifts = Array::zeros(DType::i32, {per_byte});
    for (std::int64_t i = 0; i < per_byte; ++i) shifts.set_integer(i, i * bits);
    Value by = constant(c.graph(), shifts);
    parts = joined(ops::shift_right, parts, by);
    parts = joined(ops::bit_and, parts, integer(c.graph(), (1 << bits) - 1, DType::i32));
    parts = reshape_to(parts, {width, parts.shape()[1] * Dim(per_byte)});
    return slice_axis(parts, 1, 0, count);
  };
  if (c.in(1).dtype() != DType::u8)
    c.unsupported(cat("input 1 ('B') is ", c.in(1).type(), ", expected u8"));
  Value numbers = reshape_to(unpacked(c.in(1), blocks * block), {width, blocks, block});
  Value scale = reshape_to(cast_to(c.in(2), real), {width, blocks, 1}), zero;
  if (!c.has(3))
    zero = scalar(c.graph(), static_cast<double>(1 << (bits - 1)), real);
  else if (is_float(c.in(3).dtype()))
    zero = reshape_to(cast_to(c.in(3), real), {width, blocks, 1});
  else
    zero = reshape_to(cast_to(unpacked(c.in(3), blocks), real), {width, blocks, 1});
  numbers = cast_to(numbers, real);
  if (c.has(4)) {  // the block whose scale each row of the matrix uses
    const Value blocks_of = slice_axis(c.in(4), 0, 0, depth);
    require_within(blocks_of, 0, blocks - 1, "g_idx");
    numbers = slice_axis(reshape_to(numbers, {width, blocks * block}), 1, 0, depth);
    auto of_row = [&](Value v) {
      if (v.rank() == 0) return v;
      return ops::gather(Values{reshape_to(v, {width, blocks}), blocks_of},
                         {{"axis", std::int64_t{1}}});
    };
    zero = of_row(zero), scale = of_row(scale);
  }
  Value weights = times(minus(numbers, zero), scale);
  if (!c.has(4)) weights = slice_axis(reshape_to(weights, {width, blocks * block}), 1, 0, depth);
  Value y = dot_general(c.in(0), weights, {}, {{c.in(0).rank() - 1, 1}});
  return {c.has(5) ? added(y, c.in(5)) : y};
}

// ==== norms

struct RowNorm {
  Value y, mean, inverse;
};

// Over the last axis, in f32; without subtracting the mean if `centres` is false.
RowNorm row_norm(NodeContext& c, Value x, Value scale, Value bias, double epsilon, bool centres) {
  const std::int64_t axis = x.rank() - 1;
  const Shape row{x.shape()[-1]};
  auto fitted_to_row = [&](Value v, double fallback) {
    return broadcast_to(v ? v : scalar(c.graph(), fallback, x.dtype()), row);
  };
  Attrs attrs{{"axis", axis}, {"epsilon", epsilon}};
  RowNorm out;
  out.y = centres
              ? ops::layer_norm(Values{x, fitted_to_row(scale, 1), fitted_to_row(bias, 0)}, attrs)
              : ops::rms_norm(Values{x, fitted_to_row(scale, 1)}, attrs);
  const Axes last = {x.rank() - 1};
  Value wide = cast_to(x, DType::f32);
  if (centres) {
    out.mean = mean_over(wide, last, true);
    wide = minus(wide, out.mean);
  }
  out.inverse = ops::rsqrt(mean_over(wide * wide, last, true) + epsilon);
  return out;
}

Value operand_or_none(NodeContext& c, std::size_t i) { return c.has(i) ? c.in(i) : Value(); }

// Also returns the sum, so that the next layer can add to it.
Values skip_norm(NodeContext& c, bool centres) {
  const double epsilon = c.real("epsilon", 1e-12);
  Value sum = plus(c.in(0), c.in(1));
  const std::size_t bias = centres ? 4 : 3;
  if (c.has(bias)) sum = added(sum, c.in(bias));
  RowNorm n =
      row_norm(c, sum, c.in(2), centres ? operand_or_none(c, 3) : Value(), epsilon, centres);
  if (!n.mean) n.mean = n.inverse;  // not computed, and must not be used
  if (!centres && c.wants(1))
    c.unsupported("output 1 ('mean') is not supported; this normalization computes no mean");
  return {n.y, n.mean, n.inverse, sum};
}
Values skip_layer_norm(NodeContext& c) { return skip_norm(c, true); }
Values skip_simplified_norm(NodeContext& c) { return skip_norm(c, false); }

// Rows of the word, position and segment tables, added and normalized.
Values embed_layer_norm(NodeContext& c) {
  const Value ids = c.in(0);
  if (ids.rank() != 2) c.bad_input(0, "input_ids", "[batch, length]");
  const double epsilon = c.real("epsilon", 1e-12);
  c.ignore("mask_index_type");
  auto rows = [&](Value table, Value index) {
    require_within(index, 0, table.shape()[0] - Dim(1), "index");
    return ops::gather(Values{table, index}, {{"axis", std::int64_t{0}}});
  };
  const Dim length = ids.shape()[1];
  Value sum = rows(c.in(2), ids);
  Value place = c.has(8) ? rows(c.in(3), c.in(8)) : slice_axis(c.in(3), 0, 0, length);
  sum = plus(sum, place);
  if (c.has(1) && c.has(4)) sum = plus(sum, rows(c.in(4), c.in(1)));
  RowNorm n = row_norm(c, sum, c.in(5), c.in(6), epsilon, true);
  Value mask = integers_filled(c.graph(), DType::i32, Shape{ids.shape()[0]}, 0);
  if (c.has(7)) mask = sum_over(cast_to(c.in(7), DType::i32), {1});
  return {n.y, mask, sum};
}

// ==== others

Values bias_softmax(NodeContext& c) {
  Value x = plus(c.in(0), c.in(1));
  const int axis = c.axis(c.integer("axis", 1), x.rank());
  c.ignore("is_inner_broadcast");
  std::span<const Dim> dims = x.shape().dims;
  const auto at = static_cast<std::size_t>(axis);
  Value flat = reshape_to(x, {product(dims.first(at)), product(dims.subspan(at))});
  return {reshape_to(ops::softmax(flat, {{"axis", std::int64_t{1}}}), x.shape().dims)};
}

Values expand_dims(NodeContext& c) {
  return {unsqueeze(c.in(0), {c.axis(c.number(1), c.in(0).rank() + 1)})};
}

// The distance from each row of a to each row of b.
Values row_distances(NodeContext& c) {
  Value a = c.in(0), b = c.in(1);
  if (a.rank() != 2 || b.rank() != 2)
    c.fail(cat("the inputs are ", a.type(), " and ", b.type(), ", expected two matrices"));
  std::string_view metric = c.text("metric", "sqeuclidean");
  if (metric != "euclidean" && metric != "sqeuclidean")
    c.unsupported(cat("attribute 'metric' is '", metric, "', expected euclidean or sqeuclidean"));
  Value difference = minus(unsqueeze(a, {1}), unsqueeze(b, {0}));
  Value squares = sum_over(difference * difference, {2});
  return {metric == "euclidean" ? ops::sqrt(squares) : squares};
}

constexpr ImportEntry contrib_table[] = {
    {.op = "Gelu", .import = gelu_of_sum, .domain = contrib_domain},
    {.op = "BiasGelu", .import = gelu_of_sum, .domain = contrib_domain},
    {.op = "FastGelu", .import = fast_gelu, .domain = contrib_domain},
    {.op = "QuickGelu", .import = quick_gelu, .domain = contrib_domain},
    {.op = "FusedMatMul", .import = fused_matmul, .domain = contrib_domain},
    {.op = "TransposeMatMul", .import = fused_matmul, .domain = contrib_domain},
    {.op = "FusedGemm", .import = fused_gemm, .domain = contrib_domain},
    {.op = "FusedConv", .import = fused_conv, .domain = contrib_domain},
    {.op = "MatMulNBits", .import = matmul_in_bits, .domain = contrib_domain},
    {.op = "SkipLayerNormalization", .import = skip_layer_norm, .domain = contrib_domain},
    {.op = "SkipSimplifiedLayerNormalization",
     .import = skip_simplified_norm,
     .domain = contrib_domain},
    {.op = "EmbedLayerNormalization", .import = embed_layer_norm, .domain = contrib_domain},
    {.op = "BiasSoftmax", .import = bias_softmax, .domain = contrib_domain},
    {.op = "ExpandDims", .import = expand_dims, .domain = contrib_domain},
    {.op = "CDist", .import = row_distances, .domain = contrib_domain},
};

}  // namespace

std::span<const ImportEntry> contrib_imports() { return contrib_table; }

}  // namespace hone::onnx
