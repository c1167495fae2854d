// Broadcasting of operands whose open sizes may be equal or 1: [n, 4] and [2, m]. The model is read
// with such sizes as equal and, for all other runs, a second time with sizes of which each may
// be 1.
#pragma once

#include "import/onnx/node/context.h"

namespace hone::onnx {

// The operands of a node with one common shape.
Values broadcast_operands(NodeContext&, const Values&);
std::pair<Value, Value> broadcast_operands(NodeContext&, Value a, Value b);
// The same for all axes but the last `kept`, which stay; ranks below `kept` stay, too.
std::pair<Value, Value> broadcast_leading(NodeContext&, Value a, Value b, int kept);
// v repeated along the axes whose open sizes may be 1, where the shape that it must fit has more.
Value repeat_open_axes(NodeContext&, Value v, const Shape& shape);
// v repeated to a shape that it must fit.
Value broadcast_operand_to(NodeContext&, Value v, const Shape& shape);

}  // namespace hone::onnx
