#include "kernel/positions.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace hone {

namespace {

Dim value_of(const DimExpr::Term& t) {
  Dim p = t.factor;
  for (const Dim& atom : t.atoms) p = p * atom;
  return p;
}

// t / divisor, if it divides exactly.
std::optional<Dim> divide(DimExpr::Term t, const DimExpr::Term& divisor) {
  if (t.factor % divisor.factor != 0) return std::nullopt;
  t.factor /= divisor.factor;
  for (const Dim& atom : divisor.atoms) {
    auto it = std::find(t.atoms.begin(), t.atoms.end(), atom);
    if (it == t.atoms.end()) return std::nullopt;
    t.atoms.erase(it);
  }
  return value_of(t);
}

// b, made nonzero: if it may be 0, no element is computed then.
Dim divisor(const Dim& b) { return b.low() > 0 ? b : max(b, Dim(1)); }

struct Division {
  Dim whole = 0, rest = 0;  // a = whole * b + rest
};

Division divide(const Dim& a, const Dim& b) {
  std::vector<DimExpr::Term> by = terms_of(b);
  if (by.size() != 1) return {0, a};
  Division d;
  for (const DimExpr::Term& t : terms_of(a)) {
    if (auto exact = divide(t, by[0]))
      d.whole = d.whole + *exact;
    else
      d.rest = d.rest + value_of(t);
  }
  return d;
}

}  // namespace

Dim Positions::add_loop(const Dim& extent) {
  Dim symbol = loop_symbol(loops_++, extent);
  extents_.insert_or_assign(symbol, extent);
  return symbol;
}

Dim Positions::add_register(const Dim& extent) {
  Dim symbol = register_symbol(registers_++, 0, std::max<std::int64_t>(0, extent.high() - 1));
  extents_.insert_or_assign(symbol, extent);
  return symbol;
}

Dim Positions::extent(const Dim& symbol) const {
  auto it = extents_.find(symbol);
  return it == extents_.end() ? Dim(0) : it->second;
}

// Replaces every variable by its last (or first) position, if d is a sum of products that increase
// with it.
std::optional<Dim> Positions::extreme(const Dim& d, bool largest) const {
  Dim total = 0;
  for (const DimExpr::Term& t : terms_of(d)) {
    Dim p = t.factor;
    bool grows = (t.factor > 0) == largest;
    for (const Dim& atom : t.atoms) {
      if (atom.low() < 0) return std::nullopt;
      bool is_variable = extents_.contains(atom);
      if (is_variable)
        p = p * (grows ? extent(atom) - Dim(1) : Dim(0));
      else
        p = p * atom;
    }
    total = total + p;
  }
  return total;
}

std::optional<Dim> Positions::upper(const Dim& a) const { return extreme(a, true); }
std::optional<Dim> Positions::lower(const Dim& a) const { return extreme(a, false); }

bool Positions::proves_nonnegative(const Dim& a) const {
  if (a.low() >= 0) return true;
  std::optional<Dim> least = lower(a);
  return least && least->low() >= 0;
}

bool Positions::proves_below(const Dim& a, const Dim& limit) const {
  if ((a - limit).high() < 0) return true;
  std::optional<Dim> most = upper(a);
  return most && (*most - limit).high() < 0;
}

// a = unit * whole + rest with 0 <= rest < unit, where unit divides b: the rest does not affect a /
// b. The unit is 1 if there is no such sum.
Positions::Units Positions::in_units(const Dim& a, const Dim& b) const {
  const std::vector<DimExpr::Term> terms = terms_of(a);
  if (!b.is_number() || b.number() <= 1 || terms.size() < 2) return {};
  Units out{b.number()};
  for (const DimExpr::Term& t : terms)
    if (const std::int64_t common = std::gcd(t.factor, b.number()); common > 1)
      out.unit = std::gcd(out.unit, common);
  for (const DimExpr::Term& t : terms) {
    DimExpr::Term whole = t;
    whole.factor /= out.unit;
    if (t.factor % out.unit != 0)
      out.rest = out.rest + value_of(t);
    else
      out.whole = out.whole + value_of(whole);
  }
  const bool is_known = out.unit > 1 && out.unit < b.number() && !(out.rest == Dim(0)) &&
                        proves_nonnegative(out.rest) && proves_below(out.rest, out.unit) &&
                        proves_nonnegative(out.whole);
  return is_known ? out : Units();
}

// With an axis of size 0, no element is computed.
Dim Positions::quotient(const Dim& a, const Dim& b) const {
  if (b == Dim(1) || b == Dim(0)) return a;
  Division d = divide(a, b);
  if (proves_nonnegative(d.rest) && proves_below(d.rest, b)) return d.whole;
  if (!proves_nonnegative(d.rest)) return floor_div(a, divisor(b));
  if (const Units u = in_units(d.rest, b); u.unit > 1)
    return d.whole + quotient(u.whole, b.number() / u.unit);
  return d.whole + floor_div(d.rest, divisor(b));
}

Dim Positions::remainder(const Dim& a, const Dim& b) const {
  if (b == Dim(1) || b == Dim(0)) return 0;
  Division d = divide(a, b);
  if (proves_nonnegative(d.rest) && proves_below(d.rest, b)) return d.rest;
  if (!proves_nonnegative(d.rest)) return mod(a, divisor(b));
  if (const Units u = in_units(d.rest, b); u.unit > 1)
    return remainder(u.whole, b.number() / u.unit) * Dim(u.unit) + u.rest;
  return mod(d.rest, divisor(b));
}

Dim Positions::linear(std::span<const Dim> position, std::span<const Dim> sizes) {
  Dim n = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) n = n * sizes[i] + position[i];
  return joined(n);
}

namespace {

// d with the remainder in `term` joined with its quotient; nullopt if there is no such quotient.
std::optional<Dim> join_one(const Dim& d, const DimExpr::Term& term) {
  for (std::size_t i = 0; i < term.atoms.size(); ++i) {
    const DimExpr* rest = term.atoms[i].expr();
    if (!rest || rest->kind != DimExpr::Kind::mod) continue;
    DimExpr::Term others = term;
    others.atoms.erase(others.atoms.begin() + static_cast<std::ptrdiff_t>(i));
    const Dim factor = value_of(others), whole = factor * rest->b * floor_div(rest->a, rest->b);
    const std::vector<DimExpr::Term> all = terms_of(d);
    bool has_whole = !whole.is_number() && std::any_of(all.begin(), all.end(), [&](const auto& t) {
      return value_of(t) == whole;
    });
    if (has_whole) return d - whole - value_of(term) + factor * rest->a;
  }
  return std::nullopt;
}

}  // namespace

Dim joined(const Dim& d) {
  for (const DimExpr::Term& term : terms_of(d))
    if (std::optional<Dim> next = join_one(d, term)) return joined(*next);
  return d;
}

Dims Positions::split(const Dim& linear, std::span<const Dim> sizes) const {
  Dims out(sizes.size(), 0);
  Dim rest = linear;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    // The first axis of size other than 1 needs no remainder.
    bool is_first = std::all_of(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(i),
                                [](const Dim& d) { return d == Dim(1); });
    out[i] = is_first ? rest : remainder(rest, sizes[i]);
    if (is_first) break;
    rest = quotient(rest, sizes[i]);
  }
  return out;
}

Dims Positions::reshape(std::span<const Dim> position, const Dims& to, const Dims& from) const {
  Dims out;
  std::size_t i = 0, k = 0;
  // Axes are matched in runs of equal products, so that only changed axes are divided.
  while (i < to.size() || k < from.size()) {
    std::size_t i0 = i, k0 = k;
    Dim p = 1, q = 1;
    if (i < to.size()) p = to[i++];
    if (k < from.size()) q = from[k++];
    while (p != q && (i < to.size() || k < from.size())) {
      bool take_to =
          k == from.size() || (i < to.size() && prove_less(p, q).value_or(p.high() < q.high()));
      if (take_to)
        p = p * to[i++];
      else
        q = q * from[k++];
    }
    std::span<const Dim> run = position.subspan(i0, i - i0);
    Dim n = linear(run, std::span(to).subspan(i0, i - i0));
    Dims part = split(n, std::span(from).subspan(k0, k - k0));
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

bool mentions(const Dim& d, const Dim& symbol) {
  if (d.is_number()) return false;
  const DimExpr& e = *d.expr();
  if (e.kind == DimExpr::Kind::symbol) return d == symbol;
  if (e.kind != DimExpr::Kind::sum) return mentions(e.a, symbol) || mentions(e.b, symbol);
  for (const DimExpr::Term& t : e.terms)
    for (const Dim& atom : t.atoms)
      if (mentions(atom, symbol)) return true;
  return false;
}

Dim replace(const Dim& d, std::span<const Replacement> list) {
  return d.substitute([&](const Dim& symbol) -> std::optional<Dim> {
    for (const Replacement& r : list)
      if (r.symbol == symbol) return r.by;
    return std::nullopt;
  });
}

std::optional<Dim> stride_of(const Dim& d, const Dim& symbol) {
  Dim stride = 0;
  for (DimExpr::Term& t : terms_of(d)) {
    auto it = std::find(t.atoms.begin(), t.atoms.end(), symbol);
    if (it != t.atoms.end()) {
      t.atoms.erase(it);
      stride = stride + value_of(t);
    }
    for (const Dim& atom : t.atoms)
      if (mentions(atom, symbol)) return std::nullopt;
  }
  return stride;
}

bool fits_32_bits(const Dim& d) {
  constexpr std::int64_t limit = (std::int64_t{1} << 31) - 1;
  if (d.low() < -limit || d.high() > limit) return false;
  if (d.is_number()) return true;
  const DimExpr& e = *d.expr();
  if (e.kind == DimExpr::Kind::symbol) return true;
  if (e.kind != DimExpr::Kind::sum) return fits_32_bits(e.a) && fits_32_bits(e.b);
  std::int64_t total = 0;  // sum of the terms' maxima, an upper bound of all partial sums
  for (const DimExpr::Term& t : e.terms) {
    std::int64_t size = std::abs(t.factor);
    for (const Dim& atom : t.atoms) {
      if (!fits_32_bits(atom)) return false;
      std::int64_t most = std::max(std::abs(atom.low()), std::abs(atom.high()));
      if (most != 0 && size > limit / most) return false;
      size *= most;
    }
    total += size;
    if (total > limit) return false;
  }
  return true;
}

}  // namespace hone
