#include "pass/expand.h"

#include "ops/ops.h"
#include "pass/rewrite.h"

namespace hone {

bool stays_whole(const Op& op) {
  return op.kind == OpKind::elementwise || &op == &ops::softmax || &op == &ops::log_softmax ||
         &op == &ops::layer_norm || &op == &ops::rms_norm;
}

namespace {

bool has_composite(const Function& f, bool (*keep)(const Op&)) {
  for (NodeId n : live_nodes(f))
    if (const Op& op = f.graph().op(n); !op.is_core() && !keep(op)) return true;
  return false;
}

// Sizes may be spelled by another symbol that a recorded check makes equal.
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

Values expansion(const Function& f, NodeId n, const Copier& copier, Function& to) {
  const Op& op = f.graph().op(n);
  Values operands;
  for (const Value& v : f.graph().operands(n)) operands.push_back(copier(v));
  std::vector<Type> types = f.graph().result_types(n);
  Values results = op.expand({op, operands, f.graph().attrs(n), to.graph(), types});
  HONE_ASSERT(results.size() == types.size(), op.name, ".expand gave ", results.size(), " results");
  for (std::size_t i = 0; i < types.size(); ++i) results[i] = with_type(op, results[i], types[i]);
  return results;
}

}  // namespace

// One level after the other: an expansion may hold composites itself, also in bodies.
Function expand(const Function& f, bool (*keep)(const Op&)) {
  constexpr int most_levels = 32;
  Function now = f;
  for (int level = 0;; ++level) {
    HONE_ASSERT(level < most_levels, "expansions do not come to an end");
    Function next = for_bodies_too(now, [&](const Function& g) {
      if (!has_composite(g, keep)) return g;
      return transform(g, [&](NodeId n, Copier& copier, Function& to) -> Values {
        const Op& op = g.graph().op(n);
        return op.is_core() || keep(op) ? Values{} : expansion(g, n, copier, to);
      });
    });
    if (&next.graph() == &now.graph()) return now;
    now = std::move(next);
  }
}

}  // namespace hone
