// Tensors that the caller supplies for initializers and inputs of a model, by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "import/common/options.h"
#include "import/onnx/file/model.h"

namespace hone::onnx {

// The supplied tensor of that name, with the dtype that the model declares; empty if not supplied.
// Throws UserError when its shape or kind of element differs.
std::optional<Array> given_weight(const ImportOptions&, const Tensor& declared);
std::optional<Array> given_weight(const ImportOptions&, const ValueInfo& declared);

// Throws UserError when the model has none of the given names; warns about names that it lacks.
void check_weights(const Model&, const ImportOptions&, std::vector<std::string>& warnings);

}  // namespace hone::onnx
