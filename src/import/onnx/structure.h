// Whether a model's graphs name their values properly: each once, before it is used. Types nothing,
// so it sees branches and nodes that reading a model never reaches.
#pragma once

#include <string>
#include <vector>

#include "import/onnx/model.h"

namespace hone::onnx {

// `what` is in the words in which reading the model says the same; `where` tells the graph.
struct StructureError {
  std::string where, what;
};

// Names defined twice, operands without a value (with the cycle when there is one), results that no
// node makes, functions and models without outputs.
std::vector<StructureError> structure_errors(const Model&);
// What is allowed and does nothing: unused initializers, nodes and inputs, functions without a
// call, inner names that hide outer ones.
std::vector<std::string> structure_warnings(const Model&);

}  // namespace hone::onnx
