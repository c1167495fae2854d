// Numbers in few bits with a scale and a zero point: what the operators that compute with them
// share.
#pragma once

#include "import/onnx/context.h"

namespace hone::onnx {

// Scale or zero point fitted to x: one number, one for each index of the axis, or one for each
// block of `block` elements along it.
Value fitted(NodeContext&, Value v, Value x, std::int64_t axis, std::int64_t block);
// round(x / scale) + zero, within what the type holds. Everything is of x's shape; zero may be
// null.
Value quantized(NodeContext&, Value x, Value scale, Value zero, DType to);
// (x - zero) * scale, in the scale's dtype.
Value dequantized(Value x, Value scale, Value zero);
// Integers that x stands for, up to its scale: x - zero in i32, `zero` being an operand. `axis` is
// that of a zero point with more than one element.
Value without_zero(NodeContext&, Value x, std::size_t zero, int axis);
// The range of x, widened to hold 0, onto 0 .. 255: the numbers, their scale and zero point.
Values quantized_by_range(NodeContext&, Value x);
// Sums of integer products, scaled into the type of operand `scale_y` + 1. Scales may count one
// axis.
Value requantized(NodeContext&, Value sums, Value scale_a, Value scale_b, int axis_a, int axis_b,
                  std::size_t scale_y);

}  // namespace hone::onnx
