// Casts as the format means them, where it says more than `cast` does: small floats saturate, small
// integers keep the low bits, exponents round as they are told.
#pragma once

#include "import/onnx/context.h"

namespace hone::onnx {

// Reads attributes saturate and round_mode of the node.
Value cast_value(NodeContext&, Value, DType to);

}  // namespace hone::onnx
