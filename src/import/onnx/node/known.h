// Values that do not depend on the model's inputs: small ones are computed during import where a
// node needs a number. Not a constant-folding pass.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "type/array.h"

namespace hone::onnx {

// The contents of a value that follows from constants, evaluated by the reference. Empty when it
// depends on a parameter or on open sizes, or is too expensive.
std::optional<Array> known_array(Value);

// Parameters that a value depends on; the search is limited to a few nodes.
Values params_of(Value);

}  // namespace hone::onnx
