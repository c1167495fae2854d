// Checks that need no typing: unsupported operators and undefined names. Builds nothing.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "import/onnx/file/model.h"

namespace hone::onnx {

struct Source;

// One line for each node whose operator has no import function, including nodes in branches and in
// the model's own functions: index, name, domain, operator, opset and the most similar operator.
std::vector<std::string> unsupported_nodes(const Source&);

// Explains why a name has no value where a node reads it: no node produces it, or a later one does;
// then the cycle if there is one. Results for a list of nodes are cached, so that a model in which
// every node fails takes linear time. The lists must outlive it.
class Undefined {
 public:
  std::string why(const std::vector<Node>& nodes, std::size_t index, std::string_view name);

 private:
  struct List {
    std::unordered_map<std::string_view, std::size_t> makes;  // producing node, by result name
    std::vector<std::size_t> component;  // equal numbers: the nodes lie on one cycle
    std::set<std::size_t> told;          // components whose cycle was reported
  };
  const List& list(const std::vector<Node>& nodes);
  std::map<const std::vector<Node>*, List> lists_;
};

}  // namespace hone::onnx
