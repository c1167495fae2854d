// Checks that the import reads the nodes of a model as their operators' pages specify.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "verify/onnx/meaning.h"

namespace hone::onnx {

// Address of the name of a node's first result in the file: equal for copies of the node.
using NodeId = const char*;
NodeId id_of(const Node&);

struct ReadingCheck {
  std::set<NodeId> judged;  // nodes that were checked
  std::string wrong;        // the first difference; empty: none
};

// Whether the operator is covered here.
bool is_judged(const Model&, const Node&);
// All nodes of the model, including those in branches, bodies and functions.
std::vector<const Node*> all_nodes(const Model&);

// The names of all values that the check can use.
std::vector<std::string> names_to_check(const Model&);

// Evaluates each node on the import's values of its operands, and compares the results with the
// import's values. Null: a value is unknown. Skips nodes whose operands and results have more
// elements than the limit.
ReadingCheck check_reading(const Model&, const NumbersByName& values,
                           std::int64_t most_of_node = 1 << 17);

// Compares the initializers, except large ones, with the import's values. Empty: they agree.
std::string check_initializers(const Model&,
                               const std::function<std::optional<Numbers>(const Tensor&)>& values);

}  // namespace hone::onnx
