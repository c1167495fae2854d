// What a model file says of its outputs, against what they are.
#pragma once

#include <string>
#include <vector>

#include "import/onnx/model.h"
#include "import/onnx/options.h"

namespace hone::onnx {

// A line for each output whose dtype, rank or fixed size is not the one that the file declares,
// whatever the variant. Sizes are left out where the options give some: the file did not know them.
std::vector<std::string> contradictions(const Model&, const ImportOptions&,
                                        const std::vector<ImportedVariant>&);

}  // namespace hone::onnx
