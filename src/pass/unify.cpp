#include "pass/unify.h"

#include <algorithm>
#include <functional>

#include "ir/measured.h"
#include "ops/common.h"

namespace hone {

namespace {

using Names = std::map<std::string, Dim>;

// The representative of a symbol, following chains of equalities.
Dim resolved(const Names& names, Dim d) {
  while (d.is_symbol()) {
    auto it = names.find(d.name());
    if (it == names.end()) break;
    d = it->second;
  }
  return d;
}

// Data-dependent sizes stay: whether they equal others is known only at run time.
bool is_measured(const std::vector<DimBound>& measured, const Dim& symbol) {
  return std::any_of(measured.begin(), measured.end(),
                     [&](const DimBound& m) { return m.symbol == symbol; });
}

// Of two equal symbols, the one that appears first in the parameters represents both.
void collect(const Function& f, const Dims& order, Names& names) {
  const auto place = [&](const Dim& d) { return std::ranges::find(order, d) - order.begin(); };
  const std::vector<DimBound> measured = measured_sizes(f.graph());
  for (const DimCheck& c : f.graph().checks()) {
    if (!c.a.is_symbol() || !c.b.is_symbol()) continue;
    if (is_measured(measured, c.a) || is_measured(measured, c.b)) continue;
    Dim a = resolved(names, c.a), b = resolved(names, c.b);
    if (a == b) continue;
    if (b.is_symbol() && place(b) < place(a)) std::swap(a, b);
    names.emplace(b.name(), a);
  }
  for (NodeId n : live_nodes(f))
    for (const Attrs::Entry& e : f.graph().attrs(n).entries())
      if (auto* body = std::get_if<FunctionRef>(&e.second)) collect(**body, order, names);
}

class Substitution {
 public:
  // Returns the replacement of a symbol, or nullopt to keep it.
  using Lookup = std::function<std::optional<Dim>(const Dim& symbol)>;

  explicit Substitution(Lookup lookup) : lookup_(std::move(lookup)) {}
  explicit Substitution(const Names& names)
      : lookup_([&names](const Dim& symbol) -> std::optional<Dim> {
          if (!names.contains(symbol.name())) return std::nullopt;
          return resolved(names, symbol);
        }) {}

  Dim operator()(const Dim& d) const { return d.substitute(lookup_); }
  Type operator()(Type t) const {
    for (Dim& d : t.shape.dims) d = (*this)(d);
    return t;
  }
  Attrs operator()(const Attrs& attrs) const {
    Attrs out;
    for (const Attrs::Entry& e : attrs.entries()) out.set(e.first, attribute(e.second));
    return out;
  }

  Function operator()(const Function& f) const {
    Function out;
    for (const Function::Param& p : f.params()) out.add_param((*this)(p.value.type()), p);
    for (const DimCheck& c : f.graph().checks())
      out.graph().require_equal((*this)(c.a), (*this)(c.b), c.message);
    fill(f, Copier(f, out), out);
    return out;
  }

  // Parameters keep their types.
  Function inside(const Function& f) const {
    Function out;
    for (const Function::Param& p : f.params()) out.add_param(p.value.type(), p);
    for (const DimCheck& c : f.graph().checks()) out.graph().add_check(c);
    Values params;
    for (const Function::Param& p : out.params())
      params.push_back(p.value.type().is_tensor()
                           ? reshape_to(p.value, (*this)(p.value.type()).shape.dims)
                           : p.value);
    fill(f, Copier(f, params, out), out);
    return out;
  }

 private:
  void fill(const Function& f, Copier copy, Function& out) const {
    for (NodeId n : live_nodes(f)) {
      if (copy.has(n)) continue;
      OriginScope scope(out.graph(), copy.origins_in_target(n));
      Values operands, results;
      for (const Value& v : f.graph().operands(n)) operands.push_back(copy(v));
      Value made = out.graph().intern(f.graph().op(n), operands, (*this)(f.graph().attrs(n)));
      for (std::size_t i = 0; i < f.graph().result_count(n); ++i) results.push_back(made.result(i));
      copy.set(n, std::move(results));
    }
    for (const Function::Result& r : f.results()) out.add_result(copy(r.value), r);
  }

  Attr attribute(const Attr& a) const {
    if (auto* dims = std::get_if<Dims>(&a)) {
      Dims out;
      for (const Dim& d : *dims) out.push_back((*this)(d));
      return out;
    }
    if (auto* body = std::get_if<FunctionRef>(&a))
      return std::make_shared<const Function>((*this)(**body));
    return a;
  }

  Lookup lookup_;
};

}  // namespace

Function unify_sizes(const Function& f) {
  Names names;
  collect(f, f.symbols(), names);
  return names.empty() ? f : Substitution(names)(f);
}

Function unify_sizes_inside(const Function& f) {
  Names names;
  collect(f, f.symbols(), names);
  return names.empty() ? f : Substitution(names).inside(f);
}

Function substitute_sizes(const Function& f, const std::map<std::string, Dim>& by_name) {
  return Substitution(by_name)(f);
}

Function substitute_sizes(const Function& f,
                          const std::unordered_map<std::string, std::int64_t>& by_name) {
  return Substitution([&](const Dim& symbol) -> std::optional<Dim> {
    const auto at = by_name.find(symbol.name());
    return at == by_name.end() ? std::nullopt : std::optional<Dim>(at->second);
  })(f);
}

}  // namespace hone
