// Checks that a model's graphs define each name once, before it is used. Does no typing, so it also
// covers branches and nodes that reading a model never reaches.
#pragma once

#include <string>
#include <vector>

#include "import/onnx/file/model.h"

namespace hone::onnx {

// `what` uses the same words as reading the model; `where` names the graph.
struct StructureError {
  std::string where, what;
};

// Names defined twice, operands without a value (with the cycle if there is one), results that no
// node produces, functions and models without outputs.
std::vector<StructureError> structure_errors(const Model&);
// Allowed but useless constructs: unused initializers, nodes and inputs, functions that are not
// called, inner names that hide outer ones.
std::vector<std::string> structure_warnings(const Model&);

}  // namespace hone::onnx
