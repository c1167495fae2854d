// Compares the outputs that a model file declares with the actual ones.
#pragma once

#include <string>
#include <vector>

#include "import/common/options.h"
#include "import/onnx/file/model.h"

namespace hone::onnx {

// Whether the type matches the declaration; anything undeclared matches.
bool fits(const ValueInfo& declared, const Type&, bool sizes_too = true);
// "f32[batch,3]"
std::string text_of(const ValueInfo& declared);

// A line for each output whose dtype, rank or fixed size contradicts the file's declaration, in any
// variant. Sizes are not compared where the options give some, since the file did not know them,
// nor behind pools of which ONNX's shape inference may count too many windows.
std::vector<std::string> contradictions(const Model&, const ImportOptions&,
                                        const std::vector<ImportedVariant>&);

}  // namespace hone::onnx
