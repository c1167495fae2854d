// Tensors that the caller gives for initializers and inputs of a model, by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "import/onnx/model.h"
#include "import/onnx/options.h"

namespace hone::onnx {

// The given tensor of that name, as the model declares it; nothing when none is given. Throws
// UserError when shape or kind of element is another one.
std::optional<Array> given_weight(const ImportOptions&, const Tensor& declared);
std::optional<Array> given_weight(const ImportOptions&, const ValueInfo& declared);

// Throws UserError when the model has none of the given names; warns of those that it lacks.
void check_weights(const Model&, const ImportOptions&, std::vector<std::string>& warnings);

}  // namespace hone::onnx
