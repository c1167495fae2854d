// Quantised numbers, with a scale and a zero point: helpers shared by the operators that compute
// with them.
#pragma once

#include "import/onnx/node/context.h"

namespace hone::onnx {

// Broadcasts a scale or zero point to x: one number, one per index of the axis, or one per block of
// `block` elements along it.
Value fitted(NodeContext&, Value v, Value x, std::int64_t axis, std::int64_t block);
// round(x / scale) + zero, clamped to the type's range. All operands have x's shape; zero may be
// null.
Value quantized(NodeContext&, Value x, Value scale, Value zero, DType to);
// (x - zero) * scale, in the scale's dtype.
Value dequantized(Value x, Value scale, Value zero);
// The integers x - zero in i32, where `zero` is an operand index: x up to its scale. `axis` is that
// of a zero point with more than one element.
Value without_zero(NodeContext&, Value x, std::size_t zero, int axis);
// Maps x's range, widened to include 0, onto 0 .. 255: the numbers, their scale and zero point.
Values quantized_by_range(NodeContext&, Value x);
// Sums of integer products, rescaled to the type of operand `scale_y` + 1. Scales may have one
// value per index of an axis.
Value requantized(NodeContext&, Value sums, Value scale_a, Value scale_b, int axis_a, int axis_b,
                  std::size_t scale_y);

}  // namespace hone::onnx
