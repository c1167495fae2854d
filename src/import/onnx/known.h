// Values that do not depend on the model's inputs: small ones are computed while the model is read,
// where a node must know a number. Not a folder of constants: that is a pass.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "type/array.h"

namespace hone::onnx {

// The contents of a value that follows from constants, by the reference meaning of its operations.
// Nothing when it depends on a parameter, on open sizes, or is too much work.
std::optional<Array> known_array(Value);

// Parameters that a value depends on, as far as few nodes show.
Values params_of(Value);

}  // namespace hone::onnx
