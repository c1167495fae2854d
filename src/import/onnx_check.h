// What can be said about a model without typing it: operators that are not supported, names that
// are not defined. Builds nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/onnx_model.h"

namespace hone::onnx {

struct Source;

// One line for every node whose operator has no import function, in branches and in the model's own
// functions too: index, name, domain, operator, opset and what is nearest.
std::vector<std::string> unsupported_nodes(const Source&);

// Why `name` has no value at node `index`: no node makes it, or a later one does. In the second
// case, the cycle when there is one.
std::string why_undefined(const std::vector<Node>& nodes, std::size_t index, std::string_view name);

}  // namespace hone::onnx
