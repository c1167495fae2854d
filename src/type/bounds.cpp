#include "type/bounds.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace hone {

namespace {

using Kind = DimExpr::Kind;
using Term = DimExpr::Term;

}  // namespace

bool holds_symbol(const Dim& d, std::string_view name) {
  if (d.is_number()) return false;
  for (const Dim& s : d.symbols())
    if (s.name() == name) return true;
  return false;
}

namespace {

// The extreme of d over all values of one symbol.
Dim extreme(const Dim& d, const DimBound& b, bool up);

Dim extreme_product(const Term& t, const DimBound& b, bool up) {
  const bool largest_atoms = (t.factor > 0) == up;
  Dim p = t.factor;
  for (const Dim& atom : t.atoms) {
    // A factor that may be negative reverses the order of the others.
    if (atom.low() < 0) {
      Dim whole = t.factor;
      for (const Dim& a : t.atoms) whole = whole * a;
      return up ? whole.high() : whole.low();
    }
    p = p * extreme(atom, b, largest_atoms);
  }
  return p;
}

Dim extreme(const Dim& d, const DimBound& b, bool up) {
  if (!holds_symbol(d, b.symbol.name())) return d;
  const DimExpr& e = *d.expr();
  switch (e.kind) {
    case Kind::symbol:
      return up ? b.most : Dim(0);
    case Kind::sum: {
      Dim total = 0;
      for (const Term& t : e.terms) total = total + extreme_product(t, b, up);
      return total;
    }
    case Kind::floor_div:
      if (e.a.low() >= 0 && e.b.low() > 0) {
        Dim divisor = extreme(e.b, b, !up);
        return floor_div(extreme(e.a, b, up), divisor.low() > 0 ? divisor : Dim(1));
      }
      break;
    case Kind::mod:
      if (e.b.low() > 0 && e.a.low() >= 0)
        return up ? min(extreme(e.b, b, true) - Dim(1), extreme(e.a, b, true)) : Dim(0);
      break;
    case Kind::min:
      return min(extreme(e.a, b, up), extreme(e.b, b, up));
    case Kind::max:
      return max(extreme(e.a, b, up), extreme(e.b, b, up));
    case Kind::equal:
      return up ? 1 : 0;
  }
  return up ? d.high() : d.low();
}

// Later bounds first: they may contain earlier symbols.
Dim extreme_of_all(Dim d, std::span<const DimBound> bounds, bool up) {
  for (std::size_t i = bounds.size(); i-- > 0 && !d.is_number();) d = extreme(d, bounds[i], up);
  return d;
}

}  // namespace

Dim largest(const Dim& d, std::span<const DimBound> bounds) {
  return extreme_of_all(d, bounds, true);
}
Type largest(const Type& t, std::span<const DimBound> bounds) {
  Type out = t;
  for (Dim& d : out.shape.dims) d = largest(d, bounds);
  return out;
}
Dim smallest(const Dim& d, std::span<const DimBound> bounds) {
  return extreme_of_all(d, bounds, false);
}

namespace {

// d / product if every term of d contains the product's atoms; otherwise empty.
std::optional<Dim> quotient(const Dim& d, const Dim& product) {
  const std::vector<Term> divisor = terms_of(product);
  if (divisor.size() != 1 || divisor[0].factor <= 0 || divisor[0].atoms.empty())
    return std::nullopt;
  Dim out = 0;
  for (Term t : terms_of(d)) {
    if (t.factor % divisor[0].factor != 0) return std::nullopt;
    for (const Dim& atom : divisor[0].atoms) {
      auto it = std::find(t.atoms.begin(), t.atoms.end(), atom);
      if (it == t.atoms.end()) return std::nullopt;
      t.atoms.erase(it);
    }
    Dim rest = t.factor / divisor[0].factor;
    for (const Dim& atom : t.atoms) rest = rest * atom;
    out = out + rest;
  }
  return out;
}

}  // namespace

namespace {

// The bound of d from one limit; empty if the limit does not apply to d.
std::optional<Dim> limited(const Dim& d, const SizeLimit& limit) {
  const std::optional<Dim> times = quotient(d, limit.product);
  return times && times->low() >= 0 ? std::optional(*times * limit.most) : std::nullopt;
}

// The bound of a limit may itself be limited by an earlier one. Empty where sizes overflow 64 bits.
std::optional<Dim> largest_by(Dim d, std::span<const DimBound> bounds,
                              std::span<const SizeLimit> limits) try {
  for (std::size_t i = limits.size(); i-- > 0;)
    if (const std::optional<Dim> less = limited(d, limits[i])) d = *less;
  return largest(d, bounds);
} catch (const UserError&) {
  return std::nullopt;
}

}  // namespace

Dim largest(const Dim& d, std::span<const DimBound> bounds, std::span<const SizeLimit> limits) {
  std::optional<Dim> best = largest_by(d, bounds, {});
  for (std::size_t i = 0; i < limits.size(); ++i)
    for (const std::span earlier : {limits.subspan(i, 1), limits.first(i + 1)}) {
      if (!limited(d, limits[i])) continue;
      const std::optional<Dim> other = largest_by(d, bounds, earlier);
      if (other && (!best || (*best - *other).high() > 0))
        best = best ? min(*best, *other) : *other;
    }
  return best ? *best : largest(d, bounds);  // throws on overflow
}

}  // namespace hone
