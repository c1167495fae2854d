// What a model file says of its outputs, against what they are.
#pragma once

#include <string>
#include <vector>

#include "import/onnx/model.h"
#include "import/onnx/options.h"

namespace hone::onnx {

// Whether a value of the type is what was declared; what is not declared fits.
bool fits(const ValueInfo& declared, const Type&, bool sizes_too = true);
// "f32[batch,3]"
std::string text_of(const ValueInfo& declared);

// A line for each output whose dtype, rank or fixed size is not the one that the file declares,
// whatever the variant. Sizes are left out where the options give some: the file did not know them.
std::vector<std::string> contradictions(const Model&, const ImportOptions&,
                                        const std::vector<ImportedVariant>&);

}  // namespace hone::onnx
