#include "verify/model/refusing_part.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/error.h"
#include "ir/measured.h"
#include "ops/host.h"
#include "ops/ops.h"

namespace hone {

namespace {

bool may_refuse(const Graph& graph, NodeId n) {
  // Other host functions take any contents.
  static const Op* const parsers[] = {&ops::decode_image, &ops::integer_of_text,
                                      &ops::real_of_text};
  const Op& op = graph.op(n);
  if (!op.pure || std::ranges::find(parsers, &op) != std::end(parsers)) return true;
  return std::ranges::any_of(graph.attrs(n).entries(), [](const Attrs::Entry& e) {
    const auto* body = std::get_if<FunctionRef>(&e.second);
    return body && may_refuse(**body);
  });
}

// Whether the result holds only numbers of the operands, so that requirements on it apply to them:
// operations that require_within() applies to an index.
bool passes_numbers_on(const Op& op) {
  static const Op* const all[] = {&ops::cast, &ops::select,     &ops::reduce_max,
                                  &ops::le,   &ops::reduce_min, &ops::bit_and,
                                  &ops::eq,   &ops::maximum,    &ops::minimum};
  return op.kind == OpKind::movement || std::ranges::find(all, &op) != std::end(all);
}

// Whether the value is the same in every run.
bool is_fixed(const Value v) {
  const Graph& graph = v.graph();
  return std::ranges::none_of(nodes_below(std::span(&v, 1)), [&](NodeId n) {
    return &graph.op(n) == &ops::param || may_refuse(graph, n);
  });
}

std::set<std::size_t> params_behind(const Function& f, Value root) {
  std::map<NodeId, std::size_t> params;
  for (std::size_t i = 0; i < f.params().size(); ++i) params[f.param(i).node()] = i;
  std::set<std::size_t> out;
  std::set<NodeId> met;
  std::vector<Value> open = {root};
  while (!open.empty()) {
    const Value v = open.back();
    open.pop_back();
    if (!met.insert(v.node()).second) continue;
    if (const auto at = params.find(v.node()); at != params.end()) out.insert(at->second);
    if (passes_numbers_on(v.op()))
      for (const Value& operand : v.operands()) open.push_back(operand);
  }
  return out;
}

}  // namespace

bool may_refuse(const Function& f) {
  return std::ranges::any_of(live_nodes(f), [&](NodeId n) { return may_refuse(f.graph(), n); });
}

Function refusing_part(const Function& f) {
  const Graph& graph = f.graph();
  const std::vector<NodeId> order = live_nodes(f);
  std::vector<bool> is_needed(graph.node_count(), false);
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    if (may_refuse(graph, *at)) is_needed[*at] = true;
    if (is_needed[*at])
      for (const Value& v : graph.operands(*at)) is_needed[v.node()] = true;
  }
  Function out = clone_params(f);
  Copier copy(f, out);
  for (NodeId n : order) {
    if (!is_needed[n] || copy.has(n)) continue;
    const Value made = copy.copy(n);
    if (&graph.op(n) == &ops::measure || (graph.op(n).pure && may_refuse(graph, n)))
      out.add_result(made, "");
  }
  return out;
}

std::vector<bool> read_params(const Function& f) {
  std::vector<bool> out(f.params().size(), false);
  for (NodeId n : live_nodes(f))
    for (const Value& v : f.graph().operands(n))
      if (&v.op() == &ops::param) out[static_cast<std::size_t>(v.attrs().integer("index"))] = true;
  return out;
}

std::vector<RequiredRange> required_ranges(const Function& f, const Sizing& sizes) {
  std::vector<RequiredRange> out(f.params().size());
  for (NodeId n : live_nodes(f)) {
    if (&f.graph().op(n) != &ops::require) continue;
    std::int64_t low = 0, high = 0;
    try {
      low = size_of(f.graph().attrs(n).dims("low").at(0), sizes);
      high = size_of(f.graph().attrs(n).dims("high").at(0), sizes);
    } catch (const UserError&) {
      continue;  // data-dependent
    }
    for (std::size_t p : params_behind(f, f.graph().operands(n)[0])) {
      RequiredRange& r = out[p];
      r = r ? std::pair(std::max(r->first, low), std::min(r->second, high)) : std::pair(low, high);
    }
  }
  for (RequiredRange& r : out)
    if (r && r->first > r->second) r = std::nullopt;
  return out;
}

std::vector<Values> compared_with(const Function& f) {
  std::vector<Values> out(f.params().size());
  for (NodeId n : live_nodes(f)) {
    if (&f.graph().op(n) != &ops::eq) continue;
    const std::span<const Value> sides = f.graph().operands(n);
    for (const std::size_t side : {0, 1}) {
      Value other = sides[1 - side];
      while (other.op().kind == OpKind::movement) other = other.operand(0);
      if (is_float(other.dtype()) || !is_fixed(other)) continue;
      for (const std::size_t p : params_behind(f, sides[side])) out[p].push_back(other);
    }
  }
  return out;
}

std::vector<Array> evaluated(const Function& f, const Values& values,
                             std::span<const Array> inputs) try {
  Function out = clone_params(f);
  Copier copy(f, out);
  for (NodeId n : nodes_below(values)) copy.copy(n);
  for (const Value& v : values) out.add_result(copy(v), "");
  return evaluate(out, inputs);
} catch (const UserError&) {
  return {};
}

}  // namespace hone
