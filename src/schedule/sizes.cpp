#include "schedule/sizes.h"

#include <map>

namespace hone {

namespace {

using SizeBinding = std::map<std::string, Dim, std::less<>>;

Dim bound_size(const Dim& d, const SizeBinding& b) {
  return d.substitute([&](const Dim& symbol) -> std::optional<Dim> {
    auto it = b.find(symbol.name());
    return it == b.end() ? std::nullopt : std::optional(it->second);
  });
}

Dims bound_sizes(Dims dims, const SizeBinding& b) {
  for (Dim& d : dims) d = bound_size(d, b);
  return dims;
}

Type bound_type(Type t, const SizeBinding& b) {
  t.shape.dims = bound_sizes(std::move(t.shape.dims), b);
  return t;
}

Function substituted(const Function& f, const SizeBinding& b);

// Symbols that a body inside binds for itself are not ours.
SizeBinding without_own(SizeBinding b, const Function& body) {
  for (const Function::Param& p : body.params())
    for (const Dim& d : p.value.shape().dims)
      if (d.is_symbol()) b.erase(d.name());
  return b;
}

Attrs bound_attrs(const Attrs& attrs, const SizeBinding& b) {
  Attrs out = attrs;
  for (const Attrs::Entry& e : attrs.entries()) {
    if (auto* dims = std::get_if<Dims>(&e.second)) out.set(e.first, bound_sizes(*dims, b));
    if (auto* body = std::get_if<FunctionRef>(&e.second))
      out.set(e.first,
              std::make_shared<const Function>(substituted(**body, without_own(b, **body))));
  }
  return out;
}

Function substituted(const Function& f, const SizeBinding& b) {
  Function out;
  for (const Function::Param& p : f.params())
    out.add_param(bound_type(p.value.type(), b), p.name, p.donated);
  // Also a check that must fail stays one: the body may never be reached.
  for (const DimCheck& c : f.graph().checks()) {
    DimCheck now{bound_size(c.a, b), bound_size(c.b, b), c.message};
    if (prove_equal(now.a, now.b) != true) out.graph().add_check(now);
  }
  Copier copier(f, out);
  for (NodeId n : live_nodes(f)) {
    if (copier.has(n)) continue;
    Values operands;
    for (const Value& v : f.graph().operands(n)) operands.push_back(copier(v));
    OriginScope scope(out.graph(), copier.origins_in_target(n));
    std::vector<Type> types = f.graph().result_types(n);
    for (Type& t : types) t = bound_type(std::move(t), b);
    Value made = out.graph().intern_typed(f.graph().op(n), operands,
                                          bound_attrs(f.graph().attrs(n), b), types);
    Values results;
    for (std::size_t i = 0; i < made.result_count(); ++i) results.push_back(made.result(i));
    copier.set(n, std::move(results));
  }
  for (const Function::Result& r : f.results()) out.add_result(copier(r.value), r.name);
  return out;
}

}  // namespace

Function with_sizes(const Function& body, std::span<const View> arguments) {
  SizeBinding b;
  bool changes = false;
  for (std::size_t i = 0; i < body.params().size(); ++i) {
    const Dims& dims = body.param(i).shape().dims;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      if (!dims[k].is_symbol()) continue;
      bool fresh = b.try_emplace(dims[k].name(), arguments[i].dims[k]).second;
      changes = changes || (fresh && dims[k] != arguments[i].dims[k]);
    }
  }
  return changes ? substituted(body, b) : body;
}

}  // namespace hone
