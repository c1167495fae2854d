// Quantised numbers, with a scale and a zero point.
#include "import/onnx/operators/quantize.h"

#include "import/common/build.h"
#include "import/onnx/node/known.h"
#include "import/onnx/operators/cast.h"
#include "import/onnx/operators/list.h"
#include "import/onnx/operators/window.h"

namespace hone::onnx {

namespace {

struct Limits {
  double low, high;
};

Limits limits_of(NodeContext& c, DType t) {
  if (is_small(t)) {
    const double high = static_cast<double>((1 << (bit_size(t) - is_signed(t))) - 1);
    return {is_signed(t) ? -high - 1 : 0, high};
  }
  switch (t) {
    case DType::u8:
      return {0, 255};
    case DType::i8:
      return {-128, 127};
    case DType::u16:
      return {0, 65535};
    case DType::i16:
      return {-32768, 32767};
    case DType::i32:
      return {-2147483648.0, 2147483647.0};
    default:
      c.unsupported(cat("quantizing to ", t, " is not supported"));
  }
}

}  // namespace

Value fitted(NodeContext& c, Value v, Value x, std::int64_t axis_given, std::int64_t block) {
  if (v.rank() == 0 || (v.rank() == 1 && v.shape()[0] == Dim(1) && block == 0))
    return broadcast_to(reshape_to(v, {}), x.shape());
  const int axis = c.axis(axis_given, x.rank());
  if (block == 0) {
    if (v.rank() == x.rank()) return broadcast_to(v, x.shape());
    if (v.rank() != 1)
      c.fail(cat("the scale or zero point is ", v.type(), " for ", x.type(),
                 ", expected at most one axis without 'block_size'"));
    return broadcast_to(along(v, axis, x.rank()), x.shape());
  }
  if (v.rank() != x.rank())
    c.fail(cat("the scale or zero point is ", v.type(), " for blocks of ", x.type(),
               ", expected equal ranks"));
  // Repeats each number `block` times along the axis and cuts the last block.
  Value each = unsqueeze(v, {axis + 1});
  Shape repeated = each.shape();
  repeated[axis + 1] = block;
  Dims dims = v.shape().dims;
  dims[static_cast<std::size_t>(axis)] = dims[static_cast<std::size_t>(axis)] * Dim(block);
  Value all = reshape_to(broadcast_to(each, repeated), dims);
  return broadcast_to(slice_axis(all, axis, 0, x.shape()[axis]), x.shape());
}

Value quantized(NodeContext& c, Value x, Value scale, Value zero, DType to) {
  if (is_float(to))
    return cast_value(c, zero ? x / scale + cast_to(zero, x.dtype()) : x / scale, to);
  const Limits limits = limits_of(c, to);
  Value y = ops::round(x / scale);
  if (zero) y = y + cast_to(zero, y.dtype());
  y = ops::minimum(ops::maximum(y, constant_like(y, limits.low)), constant_like(y, limits.high));
  return cast_to(y, to);
}

Value dequantized(Value x, Value scale, Value zero) {
  // Differences of the integers are exact in i32; products are rounded once.
  const DType wide = is_float(x.dtype()) ? scale.dtype() : DType::i32;
  Value y = cast_to(x, wide);
  if (zero) y = y - cast_to(zero, wide);
  return cast_to(y, scale.dtype()) * scale;
}

namespace {

// Null without a zero point, or with one that is known to be 0 in a float dtype (adding that would
// turn -0 into 0).
Value zero_point(NodeContext& c, Value x, std::int64_t axis, std::int64_t block) {
  if (!c.has(2)) return {};
  if (is_float(c.in(2).dtype()))
    if (std::optional<Array> known = known_array(c.in(2))) {
      bool is_zero = true;
      for (std::int64_t i = 0; i < known->count(); ++i) is_zero = is_zero && known->real(i) == 0;
      if (is_zero) return {};
    }
  return fitted(c, c.in(2), x, axis, block);
}

Values quantize_linear(NodeContext& c) {
  Value x = c.in(0);
  const std::int64_t axis = c.integer("axis", 1), block = c.integer("block_size", 0);
  DType to = c.has(2) ? c.in(2).dtype() : DType::u8;
  if (c.integer("output_dtype", 0) != 0) to = c.dtype("output_dtype");
  if (is_float(to) && !is_small(to))
    c.fail(
        cat("the dtype of the result is ", to, ", expected integers or floats of 8 bits or less"));
  if (c.has(2) && c.in(2).dtype() != to)
    c.bad_input(2, "zero_point", cat(to, ", the dtype of the result"));
  DType precision = c.in(1).dtype();
  if (c.integer("precision", 0) != 0) precision = c.dtype("precision");
  if (is_small(precision)) precision = DType::f32;
  precision = is_float(precision) ? sum_dtype(precision) : DType::f64;
  Value scale = cast_to(fitted(c, c.in(1), x, axis, block), precision);
  Value zero = zero_point(c, x, axis, block);
  if (!is_float(to)) c.ignore("saturate");
  return {quantized(c, cast_to(x, precision), scale, zero, to)};
}

Values dequantize_linear(NodeContext& c) {
  Value x = c.in(0);
  const std::int64_t axis = c.integer("axis", 1), block = c.integer("block_size", 0);
  const DType given = c.in(1).dtype();
  DType to = given;
  if (c.integer("output_dtype", 0) != 0) to = c.dtype("output_dtype");
  Value scale = cast_to(fitted(c, c.in(1), x, axis, block), sum_dtype(given));
  Value zero = zero_point(c, x, axis, block);
  if (is_float(x.dtype()) && !is_small(x.dtype()))
    c.unsupported(cat("dequantizing ", x.dtype(), " is not supported"));
  return {cast_to(dequantized(x, scale, zero), to)};
}

Values dynamic_quantize_linear(NodeContext& c) { return quantized_by_range(c, c.in(0)); }

}  // namespace

Values quantized_by_range(NodeContext& c, Value x) {
  Value none = scalar(c.graph(), 0, x.dtype());
  Value low = ops::minimum(reduce_axes(ops::reduce_min, x, all_axes(x.rank())), none);
  Value high = ops::maximum(reduce_axes(ops::reduce_max, x, all_axes(x.rank())), none);
  Value scale = (high - low) / 255.0;
  Value zero = ops::round(-low / scale);
  zero = ops::minimum(ops::maximum(zero, none), scalar(c.graph(), 255, x.dtype()));
  zero = cast_to(zero, DType::u8);
  Value all = broadcast_to(scale, x.shape());
  return {quantized(c, x, all, broadcast_to(zero, x.shape()), DType::u8), scale, zero};
}

Value without_zero(NodeContext& c, Value x, std::size_t zero, int axis) {
  Value wide = cast_to(x, DType::i32);
  if (!c.has(zero)) return wide;
  return wide - fitted(c, cast_to(c.in(zero), DType::i32), x, axis, 0);
}

Value requantized(NodeContext& c, Value sums, Value scale_a, Value scale_b, int axis_a, int axis_b,
                  std::size_t scale_y) {
  const DType real = sum_dtype(c.in(scale_y).dtype());
  auto scale = [&](Value v, int axis) { return fitted(c, cast_to(v, real), sums, axis, 0); };
  Value product = scale(scale_a, axis_a) * scale(scale_b, axis_b);
  Value zero = c.in(scale_y + 1);
  Value y = cast_to(sums, real) * (product / scale(c.in(scale_y), axis_a));
  return quantized(c, y, number_like(y, 1), fitted(c, zero, sums, axis_a, 0), zero.dtype());
}

namespace {

Value integer_product(NodeContext& c, std::size_t b, std::size_t zero_a, std::size_t zero_b) {
  Value left = c.in(0), right = c.in(b);
  return ops::matmul(without_zero(c, left, zero_a, left.rank() < 2 ? 0 : left.rank() - 2),
                     without_zero(c, right, zero_b, right.rank() - 1));
}

Values matmul_integer(NodeContext& c) { return {integer_product(c, 1, 2, 3)}; }

Values conv_integer(NodeContext& c) {
  return {convolved(c, without_zero(c, c.in(0), 2, 1), without_zero(c, c.in(1), 3, 0))};
}

Values qlinear_matmul(NodeContext& c) {
  Value sums = integer_product(c, 3, 2, 5);
  const int rank = sums.rank();
  return {requantized(c, sums, c.in(1), c.in(4), rank < 2 ? 0 : rank - 2, rank - 1, 6)};
}

Values qlinear_conv(NodeContext& c) {
  Value sums = convolved(c, without_zero(c, c.in(0), 2, 1), without_zero(c, c.in(3), 5, 0));
  if (c.has(8)) sums = sums + along_channels(c.in(8), sums.shape());
  return {requantized(c, sums, c.in(1), c.in(4), 1, 1, 6)};
}

constexpr ImportEntry quantize_table[] = {
    {"QuantizeLinear", quantize_linear, 10},
    {"DequantizeLinear", dequantize_linear, 10},
    // ONNX Runtime's quantizer writes these for types that older opsets lack.
    {.op = "QuantizeLinear", .import = quantize_linear, .domain = "com.microsoft"},
    {.op = "DequantizeLinear", .import = dequantize_linear, .domain = "com.microsoft"},
    {"DynamicQuantizeLinear", dynamic_quantize_linear, 11},
    {"MatMulInteger", matmul_integer, 10},
    {"ConvInteger", conv_integer, 10},
    {"QLinearMatMul", qlinear_matmul, 10},
    {"QLinearConv", qlinear_conv, 10},
};

}  // namespace

std::span<const ImportEntry> quantize_imports() { return quantize_table; }

}  // namespace hone::onnx
