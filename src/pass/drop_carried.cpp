#include "pass/drop_carried.h"

#include <algorithm>
#include <optional>

#include "ops/ops.h"

namespace hone {

namespace {

// What these results and all that has an effect depend on, operands first.
std::vector<NodeId> asked_nodes(const Function& f, const std::vector<std::size_t>& results) {
  Values roots;
  for (std::size_t i : results) roots.push_back(f.result(i));
  for (NodeId n : live_nodes(f))
    if (!f.graph().op(n).pure) roots.emplace_back(&f.graph(), n);
  return nodes_below(roots);
}

using Marks = std::vector<bool>;  // of operands of a loop, which are parameters of its functions

void mark_params(const Function& f, const std::vector<std::size_t>& results, Marks& marks) {
  const std::vector<NodeId> asked = asked_nodes(f, results);
  for (std::size_t i = 0; i < f.params().size(); ++i)
    if (std::ranges::find(asked, f.param(i).node()) != asked.end()) marks[i] = true;
}

// The function of the marked parameters and given results only.
FunctionRef restricted(const Function& f, const Marks& params,
                       const std::vector<std::size_t>& results) {
  auto out = std::make_shared<Function>();
  for (const DimCheck& c : f.graph().checks()) out->graph().add_check(c);
  Values given(f.params().size());
  for (std::size_t i = 0; i < given.size(); ++i)
    if (params[i]) given[i] = out->add_param(f.param(i).type(), f.params()[i]);
  Copier copy(f, given, *out);
  for (NodeId n : asked_nodes(f, results))
    if (!copy.has(n)) copy.copy(n);
  for (std::size_t i : results) out->add_result(copy(f.result(i)), f.results()[i]);
  return out;
}

// The results of the loop without the operands that are not asked for, empty if all are.
// `marks` are those that are read.
Values smaller_loop(const Graph& from, NodeId n, const Attrs& attrs, Marks marks,
                    const Copier& copy) {
  const Function &condition = *attrs.get<FunctionRef>("condition"),
                 &body = *attrs.get<FunctionRef>("body");
  const std::size_t carried = from.result_count(n);
  // A body may get a symbol from a parameter whose type is not the operand's.
  for (std::size_t i = 0; i < marks.size(); ++i)
    if (const Type type = from.operands(n)[i].type();
        !(condition.param(i).type() == type && body.param(i).type() == type))
      marks[i] = true;
  mark_params(condition, {0}, marks);
  mark_params(body, {}, marks);
  for (Marks before; before != marks;) {
    before = marks;
    for (std::size_t i = 0; i < carried; ++i)
      if (before[i]) mark_params(body, {i}, marks);
  }
  std::vector<std::size_t> kept;
  Values operands;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (!marks[i]) continue;
    if (i < carried) kept.push_back(i);
    operands.push_back(copy(from.operands(n)[i]));
  }
  if (kept.empty() || operands.size() == marks.size()) return {};
  const Value loop = ops::while_loop(operands, {{"condition", restricted(condition, marks, {0})},
                                                {"body", restricted(body, marks, kept)}});
  Values out(carried, loop);  // nobody reads the others
  for (std::size_t i = 0; i < kept.size(); ++i) out[kept[i]] = loop.result(i);
  return out;
}

// The attributes with smaller bodies, if there are any.
std::optional<Attrs> with_smaller_bodies(const Attrs& attrs) {
  std::optional<Attrs> out;
  for (const Attrs::Entry& e : attrs.entries()) {
    const FunctionRef* body = std::get_if<FunctionRef>(&e.second);
    if (!body) continue;
    Function next = drop_carried(**body);
    if (&next.graph() == &(*body)->graph()) continue;
    if (!out) out = attrs;
    out->set(e.first, std::make_shared<const Function>(std::move(next)));
  }
  return out;
}

Function once(const Function& f) {
  const Graph& from = f.graph();
  std::vector<Marks> read(from.node_count());  // results of control nodes
  const auto note = [&](const Value& v) {
    if (from.op(v.node()).kind != OpKind::control) return;
    Marks& marks = read[v.node()];
    marks.resize(std::max(from.result_count(v.node()), from.operands(v.node()).size()));
    marks[v.index()] = true;
  };
  for (NodeId n : live_nodes(f))
    for (const Value& v : from.operands(n)) note(v);
  for (const Function::Result& r : f.results()) note(r.value);
  if (std::ranges::all_of(read, [](const Marks& m) { return m.empty(); })) return f;
  bool changes = false;
  Function out = transform(f, [&](NodeId n, Copier& copy, Function& to) -> Values {
    if (read[n].empty()) return {};
    const std::optional<Attrs> smaller = with_smaller_bodies(from.attrs(n));
    const Attrs attrs = smaller ? *smaller : from.attrs(n);
    Values results;
    if (&from.op(n) == &ops::while_loop) results = smaller_loop(from, n, attrs, read[n], copy);
    if (results.empty() && smaller) {
      Values operands;
      for (const Value& v : from.operands(n)) operands.push_back(copy(v));
      const Value made = to.graph().intern(from.op(n), operands, attrs);
      for (std::size_t i = 0; i < from.result_count(n); ++i) results.push_back(made.result(i));
    }
    changes = changes || !results.empty();
    return results;
  });
  return changes ? out : f;
}

}  // namespace

Function drop_carried(const Function& f) {
  const Graph& graph = f.graph();
  // Dead or not: cheaper than finding the live ones.
  const auto end = static_cast<NodeId>(graph.node_count());
  const auto has_bodies = [&](NodeId n) {
    const Op* const op = &graph.op(n);
    return op == &ops::while_loop || op == &ops::if_else;
  };
  NodeId some = 0;
  while (some < end && !has_bodies(some)) ++some;
  if (some == end) return f;
  Function now = f;
  for (;;) {
    Function next = once(now);
    if (&next.graph() == &now.graph()) return now;
    now = std::move(next);  // what the carried values began with may be that of another loop
  }
}

}  // namespace hone
