#include "schedule/size_order.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/checked.h"

namespace hone {

namespace {

constexpr std::int64_t alignment = 64;

Dim product_of(const DimExpr::Term& t) {
  Dim out = t.factor;
  for (const Dim& a : t.atoms) out = out * a;
  return out;
}

// c * floor(x / c) is at most x and more than x - c: such terms become polynomials, an upper or a
// lower bound.
Dim without_floors(const Dim& d, bool up) {
  Dim out = 0;
  for (const DimExpr::Term& t : terms_of(d)) {
    const DimExpr* e = t.atoms.size() == 1 ? t.atoms[0].expr() : nullptr;
    bool is_floor = e && e->kind == DimExpr::Kind::floor_div && e->b.is_number() &&
                    e->b.number() > 0 && t.factor % e->b.number() == 0;
    if (!is_floor) {
      out = out + product_of(t);
      continue;
    }
    Dim times = t.factor / e->b.number();
    bool rounds_up = (t.factor > 0) == up;
    out = out + times * (rounds_up ? e->a : e->a - (e->b - Dim(1)));
  }
  return out;
}

// The sum without the nonnegative atoms that all its terms share.
Dim without_common_atoms(const Dim& d) {
  std::vector<DimExpr::Term> terms = terms_of(d);
  for (std::size_t i = 0; !terms.empty() && i < terms[0].atoms.size();) {
    Dim atom = terms[0].atoms[i];
    bool shared = atom.low() >= 0;
    for (const DimExpr::Term& t : terms)
      shared = shared && std::find(t.atoms.begin(), t.atoms.end(), atom) != t.atoms.end();
    if (!shared) {
      ++i;
      continue;
    }
    for (DimExpr::Term& t : terms) t.atoms.erase(std::find(t.atoms.begin(), t.atoms.end(), atom));
  }
  Dim out = 0;
  for (const DimExpr::Term& t : terms) out = out + product_of(t);
  return out;
}

// An upper bound of both with no more terms than both together: the larger factor of each term.
// Nullopt if a term may be negative.
std::optional<Dim> larger_terms(const Dim& a, const Dim& b) {
  std::vector<DimExpr::Term> p = terms_of(a), q = terms_of(b);
  for (const std::vector<DimExpr::Term>& terms : {p, q})
    for (const DimExpr::Term& t : terms)
      if (product_of({1, t.atoms}).low() < 0) return std::nullopt;
  Dim out = 0;
  for (DimExpr::Term& t : p) {
    std::int64_t other = 0;
    for (DimExpr::Term& u : q)
      if (t.atoms == u.atoms) other = std::exchange(u.factor, 0);
    t.factor = std::max(t.factor, other);
    out = out + product_of(t);
  }
  for (const DimExpr::Term& u : q)
    if (u.factor > 0) out = out + product_of(u);
  return out;
}

}  // namespace

Dim aligned_bytes(const Dim& d) {
  if (d.is_number()) return round_up(d.number(), alignment);
  Dim out = 0;
  for (DimExpr::Term t : terms_of(d)) {
    std::int64_t up = floor_div(t.factor + alignment - 1, alignment) * alignment;
    bool is_cheap = t.atoms.empty() || (up - t.factor) * 64 <= std::abs(t.factor);
    if (!is_cheap || product_of({1, t.atoms}).low() < 0)
      return ceil_div(d, alignment) * Dim(alignment);
    t.factor = up;
    out = out + product_of(t);
  }
  return out;
}

bool is_at_least(const Dim& a, const Dim& b) {
  if (a.is_number() && b.is_number()) return a.number() >= b.number();
  if ((a - b).low() >= 0) return true;
  Dim difference = without_floors(a, false) - without_floors(b, true);
  return difference.low() >= 0 || without_common_atoms(difference).low() >= 0;
}

void Largest::add(Dim d) {
  for (const Dim& known : list_)
    if (is_at_least(known, d)) return;
  erase_if(list_, [&](const Dim& known) { return is_at_least(d, known); });
  if (list_.size() >= most)
    if (std::optional<Dim> both = larger_terms(list_.back(), d)) {
      list_.pop_back();
      return add(std::move(*both));
    }
  list_.push_back(std::move(d));
}

void Largest::add_all(const Largest& other, const Dim& more) {
  for (const Dim& d : other.list_) add(d + more);
}

Dim Largest::size() const {
  if (list_.empty()) return 0;
  Dim out = list_[0];
  for (const Dim& d : list_) out = max(out, d);
  return out;
}

}  // namespace hone
