#include "pass/map_sizes.h"

namespace hone {

namespace {

Dims mapped(Dims dims, const SizeMap& map) {
  for (Dim& d : dims) d = map(d);
  return dims;
}

Type mapped(Type t, const SizeMap& map) {
  t.shape.dims = mapped(std::move(t.shape.dims), map);
  for (Type& e : t.element) e = mapped(std::move(e), map);
  return t;
}

// The map for a body: excludes symbols that its parameters bind to different sizes.
SizeMap inside(SizeMap map, const Function& body, std::span<const Value> operands) {
  std::size_t first = operands.size() - body.params().size();
  for (std::size_t i = 0; i < body.params().size(); ++i) {
    const Dims &own = body.param(i).shape().dims, &given = operands[first + i].shape().dims;
    for (std::size_t k = 0; k < own.size(); ++k)
      if (own[k].is_symbol() && own[k] != given[k]) map.symbols.erase(own[k].name());
  }
  return map;
}

Attrs mapped(const Graph& graph, NodeId n, const SizeMap& map) {
  const Attrs& attrs = graph.attrs(n);
  Attrs out = attrs;
  for (const Attrs::Entry& e : attrs.entries()) {
    if (auto* dims = std::get_if<Dims>(&e.second)) out.set(e.first, mapped(*dims, map));
    if (auto* body = std::get_if<FunctionRef>(&e.second))
      out.set(e.first, std::make_shared<const Function>(
                           map_sizes(**body, inside(map, **body, graph.operands(n)))));
  }
  return out;
}

Value mapped_node(const Function& f, NodeId n, const Copier& copier, Graph& to,
                  const SizeMap& map) {
  Values operands;
  for (const Value& v : f.graph().operands(n)) operands.push_back(copier(v));
  std::vector<Type> types = f.graph().result_types(n);
  for (Type& t : types) t = mapped(std::move(t), map);
  Attrs attrs = mapped(f.graph(), n, map);
  // If all sizes became numbers, make a constant.
  if (&f.graph().op(n) == &ops::dims)
    return dims_value(to, attrs.dims("dims"), types[0].dtype, types[0].shape.numbers());
  return to.intern_typed(f.graph().op(n), operands, attrs, types);
}

}  // namespace

Dim SizeMap::operator()(const Dim& d) const {
  Dim out = d.substitute([&](const Dim& symbol) -> std::optional<Dim> {
    auto it = symbols.find(symbol.name());
    return it == symbols.end() ? std::nullopt : std::optional(it->second);
  });
  return pin && out.low() == out.high() ? Dim(out.low()) : out;
}

Function map_sizes(const Function& f, const SizeMap& map) {
  Function out;
  for (const Function::Param& p : f.params()) out.add_param(mapped(p.value.type(), map), p);
  for (const DimCheck& c : f.graph().checks()) {
    DimCheck now{map(c.a), map(c.b), c.message};
    if (prove_equal(now.a, now.b) != true) out.graph().add_check(now);
  }
  Copier copier(f, out);
  for (NodeId n : live_nodes(f)) {
    if (copier.has(n)) continue;
    OriginScope scope(out.graph(), copier.origins_in_target(n));
    Value made = mapped_node(f, n, copier, out.graph(), map);
    Values results;
    for (std::size_t i = 0; i < made.result_count(); ++i) results.push_back(made.result(i));
    copier.set(n, std::move(results));
  }
  for (const Function::Result& r : f.results()) out.add_result(copier(r.value), r);
  return out;
}

}  // namespace hone
