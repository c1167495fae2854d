// What nodes of a model file give, worked out from the operators' pages on plain numbers, one
// element after the other. It shares no code with the import beyond the parsing of the file, nor
// with operations, so that an operator which the import reads wrongly is seen.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "import/onnx/model.h"
#include "verify/onnx/numbers.h"

namespace hone::onnx {

// The leading results of the node; a null input is an omitted one. Graphs that the node holds may
// use outer values. Empty if the operator, an attribute or a dtype is not covered, or if the
// evaluation would take too long.
std::optional<std::vector<Numbers>> meaning_of(const Node&, std::int64_t opset,
                                               std::span<const Numbers* const> inputs,
                                               const NumbersByName& outer = {});
bool has_meaning(const Node&);

}  // namespace hone::onnx
