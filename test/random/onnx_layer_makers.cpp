// Operators on rows, images, matrices and sequences.
#include <map>

#include "test/random/makers.h"
#include "test/random/onnx_makers.h"

namespace hone::fuzz {

namespace {

std::int64_t flag(Builder& b) { return b.random.below(2); }

Value some_axis(Builder& b, std::string_view op) {
  Value x = b.ranked(1, is_float);
  return import_one(b, op, {x}, {{"axis", std::int64_t{b.random.below(x.rank())}}});
}

Value reduced_over_axes(Builder& b, std::string_view op, Value x) {
  std::vector<std::int64_t> axes;
  for (int i = 0; i < x.rank(); ++i)
    if (b.random.chance(60)) axes.push_back(b.random.chance(30) ? i - x.rank() : i);
  return import_one(b, op, {x, integers(b, axes)},
                    {{"keepdims", flag(b)}, {"noop_with_empty_axes", flag(b)}});
}

Value reduced(Builder& b, std::string_view op) {
  return reduced_over_axes(b, op, b.ranked(1, is_float));
}
Value reduced_positive(Builder& b, std::string_view op) {
  return reduced_over_axes(b, op, tame(b, b.ranked(1, is_float), 0.1, 9));
}

Value normalized(Builder& b, std::string_view op) {
  Value x = b.ranked(1, is_float);
  return import_one(b, op, {x},
                    {{"axis", std::int64_t{b.random.below(x.rank())}},
                     {"p", std::int64_t{b.random.between(1, 2)}}});
}

// [n, channels, ...] of the given rank; the number of channels is a multiple of `multiple`.
Value image(Builder& b, int rank, std::int64_t multiple = 1) {
  auto fits = [=](Value v) {
    if (v.rank() != rank || !is_float(v.dtype()) || !v.shape().is_static()) return false;
    const std::int64_t channels = v.shape()[1].number();
    return channels > 0 && channels % multiple == 0;
  };
  if (Value x = b.random.chance(60) ? b.find(fits) : Value()) return x;
  Dims dims = {b.random.between(1, 2), multiple * b.random.between(1, 3)};
  while (std::ssize(dims) < rank) dims.push_back(b.random.of({1, 2, 3, 4, 5, 7, 8}));
  return b.operand({b.style.real, Shape(dims)});
}

Value mean_normalized(Builder& b, std::string_view op) {
  Value x = b.random.chance(50) ? image(b, 4) : b.ranked(1, is_float);
  std::vector<std::int64_t> axes;
  for (int i = 0; i < x.rank(); ++i)
    if (i != 1 || b.random.chance(30)) axes.push_back(i);
  return import_one(b, op, {x}, {{"axes", axes}});
}

Value channel_normed(Builder& b, std::string_view op) {
  const std::int64_t groups = op == "GroupNormalization" ? b.random.of({1, 2, 3}) : 1;
  Value x = image(b, b.random.of({3, 4}), groups);
  const Type t(x.dtype(), {x.shape()[1]});
  Arguments arguments = {{"epsilon", b.random.of({1e-5, 1e-2})}};
  if (op == "GroupNormalization") arguments.push_back({"num_groups", groups});
  const Value scale = b.weight(t);
  return import_one(b, op, {x, scale, b.weight(t)}, arguments);
}

Value response_normed(Builder& b, std::string_view op) {
  return import_one(b, op, {image(b, b.random.of({3, 4}))},
                    {{"size", std::int64_t{b.random.between(1, 4)}},
                     {"alpha", b.random.of({1e-4, 0.5})},
                     {"beta", b.random.of({0.75, 0.5})},
                     {"bias", b.random.of({1.0, 2.0})}});
}

Value of_image(Builder& b, std::string_view op) {
  return import_one(b, op, {image(b, b.random.of({3, 4, 5}))});
}
Value of_image_by_power(Builder& b, std::string_view op) {
  return import_one(b, op, {image(b, b.random.of({3, 4}))},
                    {{"p", std::int64_t{b.random.between(1, 3)}}});
}

Value power_pooled(Builder& b, std::string_view op) {
  const std::int64_t k = b.random.between(1, 2), step = b.random.between(1, 2);
  return import_one(b, op, {image(b, 4)},
                    {{"kernel_shape", std::vector<std::int64_t>{k, k}},
                     {"strides", std::vector<std::int64_t>{step, step}},
                     {"p", std::int64_t{b.random.between(1, 2)}}});
}

Value triangle(Builder& b, std::string_view op) {
  Value k = constant(b.graph(), Array::scalar_int(b.random.between(-2, 2), DType::i64));
  return import_one(b, op, {b.ranked(2), k}, {{"upper", flag(b)}});
}

Value from_depth(Builder& b, std::string_view op) {
  const std::int64_t block = b.random.between(1, 2);
  std::string_view mode = b.random.chance(50) ? "DCR" : "CRD";
  return import_one(b, op, {image(b, 4, block * block)}, {{"blocksize", block}, {"mode", mode}});
}

Value to_depth(Builder& b, std::string_view op) {
  const std::int64_t block = b.random.between(1, 2);
  Value x = b.operand({b.style.real,
                       {b.random.between(1, 2), b.random.between(1, 3),
                        block * b.random.between(1, 4), block * b.random.between(1, 4)}});
  return import_one(b, op, {x}, {{"blocksize", block}});
}

Value gemm(Builder& b, std::string_view op) {
  Value x = b.ranked(2, is_float);
  if (x.rank() != 2) return {};
  const bool across = b.random.chance(30), other = b.random.chance(40);
  const Dim n = b.size(), k = x.shape()[across ? 0 : 1], m = x.shape()[across ? 1 : 0];
  Shape right{k, n};
  if (other) std::swap(right.dims[0], right.dims[1]);
  if (!b.fits(right) || !b.fits({m, n})) return {};
  Values operands = {x, b.weight({x.dtype(), right})};
  if (b.random.chance(60)) operands.push_back(b.weight({x.dtype(), {n}}));
  return import_one(b, op, operands,
                    {{"transA", std::int64_t{across}},
                     {"transB", std::int64_t{other}},
                     {"alpha", b.random.of({1.0, 0.5})},
                     {"beta", b.random.of({1.0, 2.0})}});
}

Value summed_by_equation(Builder& b, std::string_view op) {
  static constexpr std::string_view equations[] = {
      "ij,jk->ik", "bij,bjk->bik",    "ij,kj->ik", "i,j->ij",   "ij->ji",       "ij->",
      "ii->i",     "bhid,bhjd->bhij", "ij,ij->i",  "bij,j->bi", "ij,jk,kl->il", "...ij->...ji"};
  const std::string_view equation = equations[b.random.below(std::ssize(equations))];
  std::map<char, Dim> sizes;
  Values operands;
  Dims dims;
  for (char c : equation.substr(0, equation.find("->") + 1)) {
    if (c == ',' || c == '-') {
      operands.push_back(b.operand({b.style.real, Shape(std::exchange(dims, {}))}));
    } else if (c == '.') {
      if (dims.empty()) dims.push_back(b.random.between(1, 3));
    } else {
      dims.push_back(sizes.try_emplace(c, b.random.between(1, 7)).first->second);
    }
  }
  return import_one(b, op, operands, {{"equation", equation}});
}

Value determinant(Builder& b, std::string_view op) {
  const std::int64_t n = b.random.between(1, 4);
  Dims dims = {n, n};
  if (b.random.chance(50)) dims.insert(dims.begin(), b.random.between(1, 3));
  return import_one(b, op, {b.operand({b.style.real, Shape(dims)})});
}

Value eye(Builder& b, std::string_view op) {
  Value x = b.find([](Value v) { return v.rank() == 2; });
  if (!x) return {};
  return import_one(b, op, {x}, {{"k", std::int64_t{b.random.between(-2, 2)}}});
}

Value resized(Builder& b, std::string_view op) {
  Value x = image(b, 4);
  std::vector<std::int64_t> sizes;
  for (const Dim& d : x.shape().dims) sizes.push_back(d.number());
  for (std::size_t i = 2; i < 4; ++i) sizes[i] = b.random.between(1, 9);
  static constexpr std::string_view modes[] = {"nearest", "linear", "cubic"};
  static constexpr std::string_view coordinates[] = {"half_pixel", "asymmetric", "align_corners",
                                                     "pytorch_half_pixel"};
  return import_one(b, op, {x, Value(), Value(), integers(b, sizes)},
                    {{"mode", modes[b.random.below(3)]},
                     {"coordinate_transformation_mode", coordinates[b.random.below(4)]}});
}

Value sampled(Builder& b, std::string_view op) {
  Value x = image(b, 4);
  const Type t(x.dtype(), {x.shape()[0], b.random.between(1, 4), b.random.between(1, 4), 2});
  static constexpr std::string_view modes[] = {"nearest", "linear", "cubic"},
                                    outsides[] = {"zeros", "border", "reflection"};
  return import_one(b, op, {x, tame(b, b.operand(t), -1.5, 1.5)},
                    {{"mode", modes[b.random.below(3)]},
                     {"padding_mode", outsides[b.random.below(3)]},
                     {"align_corners", flag(b)}});
}

Value affine_grid(Builder& b, std::string_view op) {
  const std::int64_t n = b.random.between(1, 3);
  Value theta = b.operand({b.style.real, {n, 2, 3}});
  const Value size = integers(b, {n, 1, b.random.between(1, 5), b.random.between(1, 5)});
  return import_one(b, op, {theta, size}, {{"align_corners", flag(b)}});
}

Value largest(Builder& b, std::string_view op) {
  Value x = b.ranked(1, [](DType t) { return t != DType::b1; });
  const int axis = b.random.below(x.rank());
  const auto most = static_cast<int>(std::min<std::int64_t>(x.shape()[axis].low(), 5));
  if (most < 1) return {};
  return import_one(b, op, {x, integers(b, {b.random.between(1, most)})},
                    {{"axis", std::int64_t{axis}}, {"largest", flag(b)}}, 2);
}

Value turned_sequences(Builder& b, std::string_view op) {
  Value x = b.ranked(2);
  const std::int64_t batch = flag(b);
  Value lengths =
      b.indices({x.shape()[static_cast<int>(batch)]}, x.shape()[static_cast<int>(1 - batch)]);
  return import_one(b, op, {x, lengths}, {{"batch_axis", batch}, {"time_axis", 1 - batch}});
}

Value rotated(Builder& b, std::string_view op) {
  const std::int64_t n = b.random.between(1, 2), s = b.random.between(1, 5),
                     half = b.random.between(1, 4);
  Value x = b.operand({b.style.real, {n, b.random.between(1, 3), s, 2 * half}});
  const Type t(b.style.real, {n, s, half});
  const Value cosines = b.operand(t);
  return import_one(b, op, {x, cosines, b.operand(t)}, {{"interleaved", flag(b)}});
}

Value attended(Builder& b, std::string_view op) {
  const std::int64_t n = b.random.between(1, 2), kv = b.random.between(1, 2),
                     heads = kv * b.random.between(1, 2), queries = b.random.between(1, 6),
                     keys = b.random.between(1, 6), d = b.random.of({1, 2, 4, 8});
  const DType t = b.style.real;
  Value q = b.operand({t, {n, heads, queries, d}});
  Value k = b.operand({t, {n, kv, keys, d}});
  return import_one(b, op, {q, k, b.operand({t, {n, kv, keys, b.random.between(1, 5)}})},
                    {{"is_causal", flag(b)}});
}

Value quantized(Builder& b, std::string_view op) {
  Value x = b.find([](Value v) { return v.dtype() == DType::f32; });
  if (!x) x = b.operand({DType::f32, b.shape()});
  auto number = [&](double v, DType t) { return constant(b.graph(), Array::scalar(v, t)); };
  const DType to = b.random.of({DType::u8, DType::i8});
  const Value scale = number(b.random.of({0.05, 0.25, 0.013}), DType::f32);
  const Value zero = number(b.random.of({0.0, 3.0}), to);
  Value codes = import_one(b, "QuantizeLinear", {x, scale, zero});
  if (op == "QuantizeLinear" || !codes) return codes;
  return import_one(b, op, {codes, scale, zero});
}

Value quantized_by_range(Builder& b, std::string_view op) {
  Value x = b.find([](Value v) { return v.dtype() == DType::f32; });
  if (!x) x = b.operand({DType::f32, b.shape(2)});
  return import_one(b, op, {x}, {}, 3);
}

Value product_of_bytes(Builder& b, std::string_view op) {
  const DType left = b.random.of({DType::u8, DType::i8}),
              right = b.random.of({DType::u8, DType::i8});
  const std::int64_t k = b.random.between(1, 17);
  Values operands = {b.operand({left, {b.random.between(1, 5), k}}),
                     b.weight({right, {k, b.random.between(1, 9)}})};
  if (b.random.chance(60)) operands.push_back(b.constant_of({left, Shape{}}));
  return import_one(b, op, operands);
}

Value transposed_convolution(Builder& b, std::string_view op) {
  const std::int64_t groups = b.random.of({1, 1, 2});
  Value x = image(b, b.random.of({3, 4, 4}), groups);
  Dims weights = {x.shape()[1], b.random.between(1, 3)};
  std::vector<std::int64_t> strides, pads;
  for (int i = 2; i < x.rank(); ++i) {
    weights.push_back(b.random.between(1, 3));
    strides.push_back(b.random.between(1, 3));
    pads.push_back(0);
  }
  pads.resize(2 * pads.size());
  if (weights.back() != Dim(1) && b.random.chance(40)) pads.back() = 1;
  return import_one(b, op, {x, b.weight({x.dtype(), Shape(weights)})},
                    {{"group", groups}, {"strides", strides}, {"pads", pads}});
}

Value cropped(Builder& b, std::string_view op) {
  Value x = b.ranked(1);
  std::vector<std::int64_t> sizes, axes;
  for (int i = 0; i < x.rank(); ++i)
    if (b.random.chance(60)) axes.push_back(i), sizes.push_back(b.random.between(1, 9));
  return import_one(b, op, {x, integers(b, sizes)}, {{"axes", axes}});
}

template <int gates>
Value recurrent(Builder& b, std::string_view op) {
  const std::int64_t t = b.random.between(1, 5), n = b.random.between(1, 3),
                     in = b.random.between(1, 5), hidden = b.random.between(1, 5);
  static constexpr std::string_view ways[] = {"forward", "reverse", "bidirectional"};
  const int way = b.random.below(3);
  const std::int64_t directions = way == 2 ? 2 : 1;
  const DType real = b.style.real;
  Values operands = {b.operand({real, {t, n, in}}),
                     b.weight({real, {directions, gates * hidden, in}}),
                     b.weight({real, {directions, gates * hidden, hidden}})};
  if (b.random.chance(60)) operands.push_back(b.weight({real, {directions, 2 * gates * hidden}}));
  return import_one(b, op, operands, {{"hidden_size", hidden}, {"direction", ways[way]}}, 2);
}

Value transformed(Builder& b, std::string_view op) {
  Value x = b.operand(
      {b.style.real, {b.random.between(1, 3), b.random.between(1, 9), b.random.between(1, 2)}});
  const bool is_real = x.shape()[2] == Dim(1);
  return import_one(b, op, {x},
                    {{"inverse", is_real ? 0 : flag(b)}, {"onesided", is_real ? flag(b) : 0}});
}

Value flattened(Builder& b, std::string_view op) {
  Value x = b.ranked(1);
  return import_one(b, op, {x}, {{"axis", std::int64_t{b.random.between(0, x.rank())}}});
}

Value split(Builder& b, std::string_view op) {
  Value x = b.ranked(1);
  const int axis = b.random.below(x.rank()), parts = b.random.between(1, 3);
  return import_one(b, op, {x},
                    {{"axis", std::int64_t{axis}}, {"num_outputs", std::int64_t{parts}}}, parts);
}

constexpr OnnxMaker onnx_layer_table[] = {
    {"ReduceL1", reduced},
    {"ReduceL2", reduced},
    {"ReduceSumSquare", reduced},
    {"ReduceLogSum", reduced_positive},
    {"ReduceLogSumExp", reduced},
    {"Hardmax", some_axis},
    {"LpNormalization", normalized},
    {"MeanVarianceNormalization", mean_normalized},
    {"InstanceNormalization", channel_normed},
    {"GroupNormalization", channel_normed},
    {"LRN", response_normed},
    {"GlobalAveragePool", of_image},
    {"GlobalMaxPool", of_image},
    {"GlobalLpPool", of_image_by_power},
    {"LpPool", power_pooled},
    {"Trilu", triangle},
    {"DepthToSpace", from_depth},
    {"SpaceToDepth", to_depth},
    {"Gemm", gemm},
    {"Einsum", summed_by_equation},
    {"Det", determinant},
    {"EyeLike", eye},
    {"Resize", resized},
    {"GridSample", sampled},
    {"AffineGrid", affine_grid},
    {"TopK", largest},
    {"ReverseSequence", turned_sequences},
    {"RotaryEmbedding", rotated},
    {"Attention", attended},
    {"QuantizeLinear", quantized},
    {"DequantizeLinear", quantized},
    {"DynamicQuantizeLinear", quantized_by_range},
    {"MatMulInteger", product_of_bytes},
    {"ConvTranspose", transposed_convolution},
    {"CenterCropPad", cropped},
    {"RNN", recurrent<1>},
    {"GRU", recurrent<3>},
    {"DFT", transformed},
    {"Flatten", flattened},
    {"Split", split},
};

}  // namespace

std::span<const OnnxMaker> onnx_layer_makers() { return onnx_layer_table; }

}  // namespace hone::fuzz
