// Whether the import read the nodes of a model as their operators' pages say.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "verify/onnx/meaning.h"

namespace hone::onnx {

struct ReadingCheck {
  int nodes = 0, judged = 0;  // of the model's graph; those that have a meaning here
  std::string wrong;          // the first that differs; empty: none does
};

// The names of all values that the check can use.
std::vector<std::string> names_to_check(const Model&);

// Each node's results against its meaning on the values that the import's function gives by name.
// Null: that value is not known.
ReadingCheck check_reading(const Model&,
                           const std::function<const Numbers*(std::string_view name)>& values);

}  // namespace hone::onnx
