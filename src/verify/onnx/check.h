// Whether the import read the nodes of a model as their operators' pages say.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "verify/onnx/meaning.h"

namespace hone::onnx {

// Where the name of a node's first result lies in the file: equal for copies of the node.
using NodeId = const char*;
NodeId id_of(const Node&);

struct ReadingCheck {
  std::set<NodeId> judged;  // nodes that have a meaning here
  std::string wrong;        // the first that differs; empty: none does
};

// Whether the operator has a meaning here.
bool is_judged(const Model&, const Node&);
// All nodes of the model, those of branches, bodies and functions too.
std::vector<const Node*> all_nodes(const Model&);

// The names of all values that the check can use.
std::vector<std::string> names_to_check(const Model&);

// Each node's results against its meaning on the values that the import's function gives by name.
// Null: that value is not known. Nodes whose operands and results have more elements are left out.
ReadingCheck check_reading(const Model&, const NumbersByName& values,
                           std::int64_t most_of_node = 1 << 17);

// The initializers, as far as they are not large, against what the import holds of them. Empty:
// they agree.
std::string check_initializers(const Model&,
                               const std::function<std::optional<Numbers>(const Tensor&)>& values);

}  // namespace hone::onnx
