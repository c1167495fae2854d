// Casts with ONNX semantics where they go beyond `cast`: small floats saturate, small integers keep
// the low bits, exponents round as the node specifies.
#pragma once

#include "import/onnx/node/context.h"

namespace hone::onnx {

// Reads attributes saturate and round_mode of the node.
Value cast_value(NodeContext&, Value, DType to);

}  // namespace hone::onnx
