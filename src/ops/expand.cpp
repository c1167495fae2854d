#include "ops/expand.h"

#include <algorithm>

#include "ops/ops.h"

namespace hone {

namespace {

// Sizes may be expressed by another symbol that a recorded check makes equal.
Value with_type(const Op& op, Value v, const Type& type) {
  if (v.type() == type) return v;
  HONE_ASSERT(v.dtype() == type.dtype && v.rank() == type.rank(), op.name, ".expand is ", v.type(),
              ", not ", type);
  for (int i = 0; i < type.rank(); ++i)
    HONE_ASSERT(prove_equal(v.shape()[i], type.shape[i]) != false, op.name, ".expand is ", v.type(),
                ", not ", type);
  return v.graph().intern_typed(ops::reshape, std::span(&v, 1), {{"shape", type.shape.dims}},
                                std::span(&type, 1));
}

Values expansion(const Graph& graph, NodeId n, const Copier& copier, Function& to) {
  const Op& op = graph.op(n);
  Values operands;
  for (const Value& v : graph.operands(n)) operands.push_back(copier(v));
  std::vector<Type> types = graph.result_types(n);
  Values results = op.expand({op, operands, graph.attrs(n), to.graph(), types});
  HONE_ASSERT(results.size() == types.size(), op.name, ".expand gave ", results.size(), " results");
  for (std::size_t i = 0; i < types.size(); ++i) results[i] = with_type(op, results[i], types[i]);
  return results;
}

}  // namespace

// Expands one level at a time: an expansion may contain composites.
Function expand_composites(const Function& f, const std::function<bool(const Op&)>& stays) {
  constexpr int most_levels = 32;
  auto is_left = [&](const Op& op) { return op.is_core() || (stays && stays(op)); };
  auto is_done = [&](const Function& g) {
    for (NodeId n : live_nodes(g))
      if (!is_left(g.graph().op(n))) return false;
    return true;
  };
  Function now = f;
  for (int level = 0; !is_done(now); ++level) {
    HONE_ASSERT(level < most_levels, "expansions do not come to an end");
    now = transform(now, [&](NodeId n, Copier& copier, Function& to) -> Values {
      return is_left(now.graph().op(n)) ? Values{} : expansion(now.graph(), n, copier, to);
    });
  }
  return now;
}

Function expand_nodes(const Function& f, const std::vector<NodeId>& nodes) {
  if (nodes.empty()) return f;
  return transform(f, [&](NodeId n, Copier& copier, Function& to) -> Values {
    if (std::ranges::find(nodes, n) == nodes.end()) return {};
    return expansion(f.graph(), n, copier, to);
  });
}

}  // namespace hone
