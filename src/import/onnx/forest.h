// Trees that are walked all at once, one step down each.
#pragma once

#include <vector>

#include "import/onnx/context.h"

namespace hone::onnx {

inline constexpr std::string_view ml_domain = "ai.onnx.ml";

enum class Mode { at_most, below, at_least, above, equal, unequal, member };
constexpr int mode_count = 7;

// Nodes of all trees one behind another, then the leaves, which lead to themselves.
struct Forest {
  std::int64_t nodes = 0, leaves = 0;
  std::vector<std::int64_t> roots, features, modes, yes, no, tracks_missing;
  std::vector<std::vector<double>> sets;  // of nodes of mode member
  Array splits, weights;
  std::vector<std::int64_t> targets;

  std::int64_t count() const { return nodes + leaves; }
};

// The leaf that each row reaches in each tree: i64[rows, trees], counted from 0. Fails for nodes
// that lead in a circle.
Value reached_leaves(NodeContext&, Value x, const Forest&);

}  // namespace hone::onnx
