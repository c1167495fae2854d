// Decision trees, walked in parallel, one level per step.
#pragma once

#include <vector>

#include "import/onnx/node/context.h"

namespace hone::onnx {

inline constexpr std::string_view ml_domain = "ai.onnx.ml";

enum class Mode { at_most, below, at_least, above, equal, unequal, member };
constexpr int mode_count = 7;

// Nodes of all trees in sequence, then the leaves, which point to themselves.
struct Forest {
  std::int64_t nodes = 0, leaves = 0;
  std::vector<std::int64_t> roots, features, modes, yes, no, tracks_missing;
  std::vector<std::vector<double>> sets;  // sets for nodes of mode member
  Array splits, weights;
  std::vector<std::int64_t> targets;

  std::int64_t count() const { return nodes + leaves; }
};

// The leaf that each row reaches in each tree: i64[rows, trees], counted from 0. Fails if the nodes
// form a cycle.
Value reached_leaves(NodeContext&, Value x, const Forest&);

}  // namespace hone::onnx
