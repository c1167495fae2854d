// What can be said about a model without typing it: operators that are not supported, names that
// are not defined. Builds nothing.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "import/onnx/model.h"

namespace hone::onnx {

struct Source;

// One line for every node whose operator has no import function, in branches and in the model's own
// functions too: index, name, domain, operator, opset and what is nearest.
std::vector<std::string> unsupported_nodes(const Source&);

// Says why a name has no value where a node reads it: no node makes it, or a later one does; then
// the cycle when there is one. What it knows of a list of nodes it learns once, so that a model of
// nothing but failures takes time in proportion to its size. The lists must outlive it.
class Undefined {
 public:
  std::string why(const std::vector<Node>& nodes, std::size_t index, std::string_view name);

 private:
  struct List {
    std::unordered_map<std::string_view, std::size_t> makes;  // node by the name of its result
    std::vector<std::size_t> component;  // equal numbers: the nodes lie on one cycle
    std::set<std::size_t> told;          // components whose cycle was written out
  };
  const List& list(const std::vector<Node>& nodes);
  std::map<const std::vector<Node>*, List> lists_;
};

}  // namespace hone::onnx
