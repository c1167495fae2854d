#include "ir/verify.h"

namespace hone {

namespace {

void verify_params(const Function& f) {
  for (std::size_t i = 0; i < f.params().size(); ++i) {
    Value p = f.param(i);
    HONE_ASSERT(p.is(ops::param), "parameter ", i, " is ", p.op().name);
    HONE_ASSERT(p.attrs().integer("index") == static_cast<std::int64_t>(i), "parameter ", i,
                " has index ", p.attrs().integer("index"));
  }
}

// Whether results that are stored to parameters may be.
void verify_stores(const Function& f) {
  std::vector<bool> is_taken(f.params().size(), false);
  for (const Function::Result& r : f.results()) {
    if (!r.stored_to) continue;
    HONE_ASSERT(*r.stored_to < f.params().size(), "result '", r.name, "' is stored to parameter ",
                *r.stored_to, " of ", f.params().size());
    const Function::Param& p = f.params()[*r.stored_to];
    HONE_ASSERT(p.donated, "result '", r.name, "' is stored to '", p.name,
                "', which is not donated");
    HONE_ASSERT(p.capacity ? same_but_for(*p.capacity, p.value.type(), r.value.type())
                           : p.value.type() == r.value.type(),
                "result '", r.name, "' ", r.value.type(), " is stored to '", p.name, "' ",
                p.value.type());
    HONE_ASSERT(!is_taken[*r.stored_to], "two results are stored to '", p.name, "'");
    is_taken[*r.stored_to] = true;
  }
}

void verify_types(const Function& f, NodeId n) {
  Graph& g = f.graph();
  const Op& op = g.op(n);
  Call call{op, g.operands(n), g.attrs(n), g, {}};
  std::vector<Type> now, then = g.result_types(n);
  try {
    now = op.infer(call);
  } catch (const UserError& e) {
    HONE_ASSERT(false, op.name, " was made with types that it does not take: ", e.what(), "; ",
                origins_text(Value(&g, n)));
  }
  HONE_ASSERT(now.size() == then.size(), op.name, " has ", then.size(), " results, infers ",
              now.size());
  for (std::size_t i = 0; i < now.size(); ++i)
    HONE_ASSERT(now[i] == then[i], op.name, " result ", i, " is ", then[i], ", infers ", now[i],
                "; ", origins_text(Value(&g, n)));
}

void verify_node(const Function& f, NodeId n) {
  Graph& g = f.graph();
  const Op& op = g.op(n);
  if (&op == &ops::param) {
    auto index = static_cast<std::size_t>(g.attrs(n).integer("index"));
    HONE_ASSERT(index < f.params().size() && f.param(index).node() == n, "param node ", n,
                " is not parameter ", index, " of its function");
    return;
  }
  for (const Value& v : g.operands(n)) {
    HONE_ASSERT(&v.graph() == &g, op.name, " has an operand of another graph");
    HONE_ASSERT(v.node() < n, op.name, " comes before its operand");
    HONE_ASSERT(v.index() < g.result_count(v.node()), op.name, " uses result ", v.index(), " of ",
                v.op().name);
  }
  verify_types(f, n);
  for (const Attrs::Entry& e : g.attrs(n).entries())
    if (auto* body = std::get_if<FunctionRef>(&e.second)) verify(**body);
}

}  // namespace

void verify(const Function& f) {
  verify_params(f);
  verify_stores(f);
  for (NodeId n : live_nodes(f)) verify_node(f, n);
}

void verify_bodies(const Function& f) {
  const Graph& g = f.graph();
  bool has_control = false;  // finding the live nodes takes longer
  for (NodeId n = 0; n < g.node_count() && !has_control; ++n)
    has_control = g.op(n).kind == OpKind::control;
  if (!has_control) return;
  for (NodeId n : live_nodes(f)) {
    bool has_body = false;
    for (const Attrs::Entry& e : f.graph().attrs(n).entries())
      if (auto* body = std::get_if<FunctionRef>(&e.second)) {
        has_body = true;
        verify_bodies(**body);
      }
    if (has_body) verify_types(f, n);
  }
}

}  // namespace hone
