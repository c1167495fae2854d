#include "pass/expand.h"

#include <algorithm>

#include "ops/expand.h"
#include "ops/ops.h"
#include "pass/rewrite.h"

namespace hone {

namespace {

// Norms whose mean, or mean of squares, is also computed by itself, as their derivatives do.
std::vector<NodeId> norms_with_shared_sums(const Function& f) {
  const Graph& graph = f.graph();
  std::vector<NodeId> norms, sums;
  const auto is_norm = [&](NodeId n) {
    const Op* const op = &graph.op(n);
    return op == &ops::layer_norm || op == &ops::rms_norm;
  };
  // Dead or not: cheaper than finding the live ones.
  const auto end = static_cast<NodeId>(graph.node_count());
  NodeId some = 0;
  while (some < end && !is_norm(some)) ++some;
  if (some == end) return {};
  for (NodeId n : live_nodes(f)) {
    const Op& op = graph.op(n);
    if (is_norm(n)) norms.push_back(n);
    if (&op == &ops::reduce_sum) sums.push_back(n);
  }
  std::erase_if(norms, [&](NodeId n) {
    const Value x = graph.operands(n)[0];
    const std::int64_t first = graph.attrs(n).integer("axis");
    const auto is_x = [&](const Value& v) {
      return v == x || (v.is(ops::cast) && v.operand(0) == x);
    };
    const auto is_shared = [&](NodeId sum) {
      const Value v = graph.operands(sum)[0];
      const Dims& axes = graph.attrs(sum).dims("axes");
      if (axes.empty() || axes[0] != Dim(first) || std::ssize(axes) != x.rank() - first)
        return false;
      if (&graph.op(n) == &ops::layer_norm) return is_x(v);
      return (v.is(ops::square) && is_x(v.operand(0))) ||
             (v.is(ops::mul) && is_x(v.operand(0)) && is_x(v.operand(1)));
    };
    return std::ranges::none_of(sums, is_shared);
  });
  return norms;
}

}  // namespace

Function expand(const Function& f) {
  return for_bodies_too(f, [](const Function& g) {
    return expand_composites(expand_nodes(g, norms_with_shared_sums(g)), [](const Op& op) {
      return op.kind == OpKind::elementwise || op.is_row || &op == &ops::attention;
    });
  });
}

}  // namespace hone
