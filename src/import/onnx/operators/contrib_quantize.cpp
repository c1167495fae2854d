// Quantised operators as written by ONNX Runtime's quantizer: operands are dequantised, computed
// with as reals, and quantised again.
#include "base/amount.h"
#include "import/common/build.h"
#include "import/onnx/operators/contrib.h"
#include "import/onnx/operators/list.h"
#include "import/onnx/operators/quantize.h"
#include "import/onnx/operators/window.h"

namespace hone::onnx {

namespace {

// An operand with its scale and zero point, each a single number.
Value real_operand(NodeContext& c, std::size_t input) {
  const Value x = c.in(input);
  Value scale = fitted(c, c.in(input + 1), x, 0, 0);
  Value zero = c.has(input + 2) ? fitted(c, c.in(input + 2), x, 0, 0) : Value();
  return dequantized(x, scale, zero);
}

// Quantises with the scale and zero point at `scale`; without a zero point uses 0 of another dtype.
Value stored(NodeContext& c, Value y, std::size_t scale, DType otherwise) {
  const bool has_zero = c.has(scale + 1);
  Value zero = has_zero ? fitted(c, c.in(scale + 1), y, 0, 0) : Value();
  return quantized(c, y, fitted(c, c.in(scale), y, 0, 0), zero,
                   has_zero ? c.in(scale + 1).dtype() : otherwise);
}

template <const Op& op>
Values quantized_pair(NodeContext& c) {
  Value y = joined(op, real_operand(c, 0), real_operand(c, 3));
  return {stored(c, y, 6, c.in(0).dtype())};
}

Values quantized_sigmoid(NodeContext& c) {
  return {stored(c, ops::sigmoid(real_operand(c, 0)), 3, c.in(0).dtype())};
}

Values quantized_leaky_relu(NodeContext& c) {
  Value y = ops::leaky_relu(real_operand(c, 0), {{"alpha", c.real("alpha", 0.01)}});
  return {stored(c, y, 3, c.in(0).dtype())};
}

// Before opset 13 of ai.onnx the axes from `axis` on are treated as one.
Values quantized_softmax(NodeContext& c) {
  Value x = real_operand(c, 0);
  const std::int64_t opset = c.integer("opset", 13);
  const int axis = c.axis(c.integer("axis", -1), x.rank());
  Value y;
  if (opset >= 13) {
    y = ops::softmax(x, {{"axis", std::int64_t{axis}}});
  } else {
    std::span<const Dim> dims = x.shape().dims;
    const auto at = static_cast<std::size_t>(axis);
    Value flat = reshape_to(x, {product(dims.first(at)), product(dims.subspan(at))});
    y = reshape_to(ops::softmax(flat, {{"axis", std::int64_t{1}}}), x.shape().dims);
  }
  return {stored(c, y, 3, c.in(0).dtype())};
}

// Scale and zero point of the result, then each operand with its own.
Values quantized_concat(NodeContext& c) {
  if (c.inputs() < 5 || (c.inputs() - 2) % 3 != 0)
    c.fail(cat("the node has ", amount(c.inputs(), "input", "inputs"),
               ", expected 2 and 3 more for each tensor to join"));
  Values parts;
  for (std::size_t i = 2; i < c.inputs(); i += 3) parts.push_back(real_operand(c, i));
  Value y = concat_values(parts, c.axis(c.integer("axis", 0), parts[0].rank()));
  return {stored(c, y, 0, c.in(2).dtype())};
}

Values quantized_where(NodeContext& c) {
  Value y = where(c.in(0), real_operand(c, 1), real_operand(c, 4));
  return {stored(c, y, 7, c.in(1).dtype())};
}

Axes moved_channels(int rank, bool to_front) {
  Axes perm = {0};
  if (to_front) perm.push_back(rank - 1);
  for (int i = 1; i + 1 < rank; ++i) perm.push_back(to_front ? i : i + 1);
  if (!to_front) perm.push_back(1);
  return perm;
}
Value channels_first(Value x) { return transpose_by(x, moved_channels(x.rank(), true)); }
Value channels_last(Value x) { return transpose_by(x, moved_channels(x.rank(), false)); }

Values quantized_global_average(NodeContext& c) {
  const bool last = c.flag("channels_last");
  Value x = real_operand(c, 0);
  Axes axes;
  for (int i = last ? 1 : 2; i < x.rank() - (last ? 1 : 0); ++i) axes.push_back(i);
  return {stored(c, mean_over(x, axes, true), 3, c.in(0).dtype())};
}

Values quantized_average_pool(NodeContext& c) {
  const bool last = c.flag("channels_last");
  Value x = real_operand(c, 0);
  if (last) x = channels_first(x);
  Value y = average_pooled(c, x);
  return {stored(c, last ? channels_last(y) : y, 3, c.in(0).dtype())};
}

Values pool_of_channels_last(NodeContext& c) {
  return {channels_last(max_pooled(c, channels_first(c.in(0))))};
}

// The operator of ai.onnx, and one for images with channels last.
Values quantized_conv(NodeContext& c) {
  const bool last = c.flag("channels_last");
  Value x = without_zero(c, c.in(0), 2, 1);
  Value sums = convolved(c, last ? channels_first(x) : x, without_zero(c, c.in(3), 5, 0));
  if (c.has(8)) sums = sums + along_channels(c.in(8), sums.shape());
  Value y = requantized(c, sums, c.in(1), c.in(4), 1, 1, 6);
  return {last ? channels_last(y) : y};
}

// ==== products

// Converts i32 sums to reals: scales are one number, or one per column of b.
Value scaled_sums(NodeContext& c, Value sums, Value scale_a, Value scale_b) {
  const int last = sums.rank() - 1;
  Value y = cast_to(sums, scale_b.dtype());
  return y * (fitted(c, cast_to(scale_a, y.dtype()), y, last, 0) * fitted(c, scale_b, y, last, 0));
}

Values quantized_gemm(NodeContext& c) {
  const bool turns_a = c.flag("transA"), turns_b = c.flag("transB");
  Value a = without_zero(c, c.in(0), 2, turns_a ? 1 : 0),
        b = without_zero(c, c.in(3), 5, turns_b ? 0 : 1);
  Value sums = ops::matmul(turns_a ? transpose_matrix(a) : a, turns_b ? transpose_matrix(b) : b);
  if (c.has(6)) sums = sums + broadcast_to(c.in(6), sums.shape());
  Value y = scaled_sums(c, sums, c.in(1), c.in(4));
  const double alpha = c.real("alpha", 1);
  if (alpha != 1) y = y * alpha;
  return {c.has(7) ? stored(c, y, 7, c.in(0).dtype()) : y};
}

// Operands: a, b, their scales, their zero points, a bias.
Values product_to_float(NodeContext& c) {
  Value sums = ops::matmul(without_zero(c, c.in(0), 4, c.in(0).rank() - 2),
                           without_zero(c, c.in(1), 5, c.in(1).rank() - 1));
  Value y = scaled_sums(c, sums, c.in(2), c.in(3));
  return {c.has(6) ? plus(y, c.in(6)) : y};
}

// a in f32, quantised by its range; b with its scale and zero point; a bias.
Values dynamic_product(NodeContext& c) {
  const Values a = quantized_by_range(c, c.in(0));
  Value left = cast_to(a[0], DType::i32);
  left = left - broadcast_to(cast_to(a[2], DType::i32), left.shape());
  Value sums = ops::matmul(left, without_zero(c, c.in(1), 3, c.in(1).rank() - 1));
  Value y = scaled_sums(c, sums, a[1], c.in(2));
  return {c.has(4) ? plus(y, c.in(4)) : y};
}

constexpr ImportEntry contrib_quantize_table[] = {
    {.op = "QLinearAdd", .import = quantized_pair<ops::add>, .domain = contrib_domain},
    {.op = "QLinearMul", .import = quantized_pair<ops::mul>, .domain = contrib_domain},
    {.op = "QLinearSigmoid", .import = quantized_sigmoid, .domain = contrib_domain},
    {.op = "QLinearLeakyRelu", .import = quantized_leaky_relu, .domain = contrib_domain},
    {.op = "QLinearSoftmax", .import = quantized_softmax, .domain = contrib_domain},
    {.op = "QLinearConcat", .import = quantized_concat, .domain = contrib_domain},
    {.op = "QLinearWhere", .import = quantized_where, .domain = contrib_domain},
    {.op = "QLinearGlobalAveragePool",
     .import = quantized_global_average,
     .domain = contrib_domain},
    {.op = "QLinearAveragePool", .import = quantized_average_pool, .domain = contrib_domain},
    {.op = "QLinearConv", .import = quantized_conv, .domain = contrib_domain},
    {.op = "NhwcMaxPool", .import = pool_of_channels_last, .domain = contrib_domain},
    {.op = "QGemm", .import = quantized_gemm, .domain = contrib_domain},
    {.op = "MatMulIntegerToFloat", .import = product_to_float, .domain = contrib_domain},
    {.op = "DynamicQuantizeMatMul", .import = dynamic_product, .domain = contrib_domain},
};

}  // namespace

std::span<const ImportEntry> contrib_quantize_imports() { return contrib_quantize_table; }

}  // namespace hone::onnx
