#include "type/dim.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <limits>
#include <ostream>

#include "base/checked.h"
#include "base/hash.h"

namespace hone {

std::vector<DimExpr::Term> terms_of(const Dim& d) {
  if (d.is_number())
    return d.number() == 0 ? std::vector<DimExpr::Term>{}
                           : std::vector<DimExpr::Term>{{d.number(), {}}};
  if (d.expr()->kind == DimExpr::Kind::sum) return d.expr()->terms;
  return {{1, {d}}};
}

namespace {

using Kind = DimExpr::Kind;
using Term = DimExpr::Term;
constexpr std::int64_t infinity = std::numeric_limits<std::int64_t>::max();

std::int64_t saturate(__int128 x) {
  if (x > infinity) return infinity;
  if (x < -static_cast<__int128>(infinity)) return -infinity;
  return static_cast<std::int64_t>(x);
}

// Total structural order, so that canonical forms do not depend on addresses.
int compare(const Dim& a, const Dim& b);

int compare_atoms(const Dims& a, const Dims& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (int c = compare(a[i], b[i])) return c;
  return 0;
}

int compare(const Dim& a, const Dim& b) {
  if (a.is_number() && b.is_number()) {
    std::int64_t x = a.number(), y = b.number();
    return x < y ? -1 : x > y;
  }
  if (a.is_number() != b.is_number()) return a.is_number() ? -1 : 1;
  const DimExpr &x = *a.expr(), &y = *b.expr();
  if (&x == &y) return 0;
  if (x.kind != y.kind) return x.kind < y.kind ? -1 : 1;
  if (x.kind == Kind::symbol) {
    if (x.symbol != y.symbol) return x.symbol < y.symbol ? -1 : 1;
    if (x.symbol == SymbolKind::size) return x.name.compare(y.name);
    return x.number < y.number ? -1 : x.number > y.number;
  }
  if (x.kind != Kind::sum) {
    if (int c = compare(x.a, y.a)) return c;
    return compare(x.b, y.b);
  }
  if (x.terms.size() != y.terms.size()) return x.terms.size() < y.terms.size() ? -1 : 1;
  for (std::size_t i = 0; i < x.terms.size(); ++i) {
    if (int c = compare_atoms(x.terms[i].atoms, y.terms[i].atoms)) return c;
    if (x.terms[i].factor != y.terms[i].factor)
      return x.terms[i].factor < y.terms[i].factor ? -1 : 1;
  }
  return 0;
}

struct Range {
  __int128 low, high;
};

Range multiply(Range a, Range b) {
  __int128 p[] = {saturate(a.low) * static_cast<__int128>(saturate(b.low)),
                  saturate(a.low) * static_cast<__int128>(saturate(b.high)),
                  saturate(a.high) * static_cast<__int128>(saturate(b.low)),
                  saturate(a.high) * static_cast<__int128>(saturate(b.high))};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}

Dim from_terms(std::vector<Term> terms) {
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return compare_atoms(a.atoms, b.atoms) < 0; });
  std::vector<Term> merged;
  for (Term& t : terms) {
    if (!merged.empty() && compare_atoms(merged.back().atoms, t.atoms) == 0)
      merged.back().factor = checked_add(merged.back().factor, t.factor);
    else
      merged.push_back(std::move(t));
  }
  std::erase_if(merged, [](const Term& t) { return t.factor == 0; });
  if (merged.empty()) return 0;
  if (merged.size() == 1) {
    if (merged[0].atoms.empty()) return merged[0].factor;
    if (merged[0].factor == 1 && merged[0].atoms.size() == 1) return merged[0].atoms[0];
  }
  DimExpr e{.kind = Kind::sum};
  __int128 low = 0, high = 0;
  for (const Term& t : merged) {
    Range r{t.factor, t.factor};
    for (const Dim& atom : t.atoms) r = multiply(r, {atom.low(), atom.high()});
    low += saturate(r.low);
    high += saturate(r.high);
  }
  e.low = saturate(low);
  e.high = saturate(high);
  e.terms = std::move(merged);
  return DimExpr::make(std::move(e));
}

Dim binary(Kind kind, const Dim& a, const Dim& b, std::int64_t low, std::int64_t high) {
  if (low == high) return low;
  DimExpr e{.kind = kind};
  e.low = low;
  e.high = high;
  e.a = a;
  e.b = b;
  return DimExpr::make(std::move(e));
}

// d / n when every factor of d divides by n.
std::optional<Dim> divide_exactly(const Dim& d, std::int64_t n) {
  std::vector<Term> terms = terms_of(d);
  for (Term& t : terms) {
    if (t.factor % n != 0) return std::nullopt;
    t.factor /= n;
  }
  return from_terms(std::move(terms));
}

}  // namespace

Dim DimExpr::make(DimExpr e) {
  std::uint64_t h = static_cast<std::uint64_t>(e.kind) + 0x51ed;
  if (e.kind == Kind::symbol) {
    h = hash_text(e.name, h);  // names are unique across kinds
  } else if (e.kind == Kind::sum) {
    for (const Term& t : e.terms) {
      h = mix(h, static_cast<std::uint64_t>(t.factor));
      for (const Dim& atom : t.atoms) h = mix(h, atom.hash());
    }
  } else {
    h = mix(mix(h, e.a.hash()), e.b.hash());
  }
  e.hash = h;
  Dim d;
  d.expr_ = new DimExpr(std::move(e));
  d.share();
  return d;
}

Dim Dim::symbol(std::string name, std::int64_t low, std::int64_t high) {
  if (low < 0 || low > high)
    throw UserError("symbol '", name, "': the range is ", low, " to ", high,
                    ", expected 0 <= low <= high");
  bool legal = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
  for (char c : name)
    legal = legal && (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.');
  if (!legal)
    throw UserError(
        "symbol '", name,
        "': the name is invalid, expected letters, digits, '_' and '.', not starting with a digit");
  DimExpr e{.kind = Kind::symbol};
  e.name = std::move(name);
  e.low = low;
  e.high = high;
  return DimExpr::make(std::move(e));
}

Dim Dim::symbol(SymbolKind kind, std::int32_t number, std::int64_t low, std::int64_t high) {
  HONE_ASSERT(kind != SymbolKind::size && number >= 0 && low <= high, "a symbol of a kernel");
  DimExpr e{.kind = Kind::symbol};
  e.symbol = kind;
  e.number = number;
  e.name = (kind == SymbolKind::loop ? "loop:" : "reg:") + std::to_string(number);
  e.low = low;
  e.high = high;
  return DimExpr::make(std::move(e));
}

void Dim::share() const { std::atomic_ref(expr_->holders).fetch_add(1, std::memory_order_relaxed); }
void Dim::drop() const {
  if (std::atomic_ref(expr_->holders).fetch_sub(1, std::memory_order_acq_rel) == 1) delete expr_;
}

std::int64_t Dim::number() const {
  HONE_ASSERT(!expr_, "dim ", *this, " is not a number");
  return number_;
}
std::int64_t Dim::low() const { return expr_ ? expr_->low : number_; }
std::int64_t Dim::high() const { return expr_ ? expr_->high : number_; }
bool Dim::is_symbol() const { return expr_ && expr_->kind == Kind::symbol; }
const std::string& Dim::name() const {
  HONE_ASSERT(is_symbol(), "dim ", *this, " is not a symbol");
  return expr_->name;
}
std::optional<std::int32_t> Dim::number_of(SymbolKind kind) const {
  if (!is_symbol() || expr_->symbol != kind) return std::nullopt;
  return expr_->number;
}
std::uint64_t Dim::hash() const {
  return expr_ ? expr_->hash : mix(0x9e37, static_cast<std::uint64_t>(number_));
}

bool Dim::equal_expressions(const Dim& a, const Dim& b) {
  return a.expr_->hash == b.expr_->hash && compare(a, b) == 0;
}

std::int64_t Dim::eval(const std::function<std::int64_t(std::string_view)>& value) const {
  if (!expr_) return number_;
  const DimExpr& e = *expr_;
  switch (e.kind) {
    case Kind::symbol:
      return value(e.name);
    case Kind::sum: {
      std::int64_t total = 0;
      for (const Term& t : e.terms) {
        std::int64_t p = t.factor;
        for (const Dim& atom : t.atoms) p = checked_mul(p, atom.eval(value));
        total = checked_add(total, p);
      }
      return total;
    }
    default:
      break;
  }
  std::int64_t a = e.a.eval(value), b = e.b.eval(value);
  switch (e.kind) {
    case Kind::floor_div:
    case Kind::mod:
      if (b == 0) throw UserError("size ", *this, ": division by zero for the given sizes");
      return e.kind == Kind::mod ? hone::floor_mod(a, b) : hone::floor_div(a, b);
    case Kind::min:
      return std::min(a, b);
    case Kind::max:
      return std::max(a, b);
    default:
      return a == b;
  }
}

Dim Dim::substitute(const std::function<std::optional<Dim>(const Dim&)>& with) const {
  if (!expr_) return *this;
  const DimExpr& e = *expr_;
  switch (e.kind) {
    case Kind::symbol:
      return with(*this).value_or(*this);
    case Kind::sum: {
      Dim total = 0;
      for (const Term& t : e.terms) {
        Dim p = t.factor;
        for (const Dim& atom : t.atoms) p = p * atom.substitute(with);
        total = total + p;
      }
      return total;
    }
    case Kind::floor_div:
      return hone::floor_div(e.a.substitute(with), e.b.substitute(with));
    case Kind::mod:
      return hone::mod(e.a.substitute(with), e.b.substitute(with));
    case Kind::min:
      return hone::min(e.a.substitute(with), e.b.substitute(with));
    case Kind::max:
      return hone::max(e.a.substitute(with), e.b.substitute(with));
    case Kind::equal:
      return hone::equal(e.a.substitute(with), e.b.substitute(with));
  }
  return *this;
}

Dims Dim::symbols() const {
  Dims found;
  Dims stack = {*this};
  while (!stack.empty()) {
    Dim d = stack.back();
    stack.pop_back();
    if (!d.expr_) continue;
    const DimExpr& e = *d.expr_;
    if (e.kind == Kind::symbol) {
      found.push_back(d);
    } else if (e.kind == Kind::sum) {
      for (const Term& t : e.terms) stack.insert(stack.end(), t.atoms.begin(), t.atoms.end());
    } else {
      stack.push_back(e.a);
      stack.push_back(e.b);
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Dim& a, const Dim& b) { return compare(a, b) < 0; });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_number() && b.is_number()) return checked_add(a.number(), b.number());
  std::vector<Term> terms = terms_of(a), more = terms_of(b);
  terms.insert(terms.end(), more.begin(), more.end());
  return from_terms(std::move(terms));
}

Dim Dim::product_of(const Dim& a, const Dim& b) {
  if (a.is_number() && b.is_number()) return checked_mul(a.number(), b.number());
  std::vector<Term> terms;
  for (const Term& x : terms_of(a))
    for (const Term& y : terms_of(b)) {
      Term t{checked_mul(x.factor, y.factor), x.atoms};
      t.atoms.insert(t.atoms.end(), y.atoms.begin(), y.atoms.end());
      std::sort(t.atoms.begin(), t.atoms.end(),
                [](const Dim& p, const Dim& q) { return compare(p, q) < 0; });
      terms.push_back(std::move(t));
    }
  return from_terms(std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) {
  if (a.is_number() && b.is_number()) return checked_sub(a.number(), b.number());
  return a + b * Dim(-1);
}

std::optional<Dim> exact_quotient(const Dim& a, const Dim& b) {
  const std::vector<Term> divisor = terms_of(b);
  if (divisor.size() != 1) return std::nullopt;
  std::vector<Term> terms = terms_of(a);
  for (Term& t : terms) {
    if (t.factor % divisor[0].factor != 0) return std::nullopt;
    t.factor /= divisor[0].factor;
    for (const Dim& atom : divisor[0].atoms) {
      auto it = std::find(t.atoms.begin(), t.atoms.end(), atom);
      if (it == t.atoms.end()) return std::nullopt;
      t.atoms.erase(it);
    }
  }
  return from_terms(std::move(terms));
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (b.low() <= 0 && b.high() >= 0)
    throw UserError("size ", a, " is divided by ", b,
                    ", which can be zero; give the size a lower bound of at least 1");
  if (a.is_number() && b.is_number()) return hone::floor_div(a.number(), b.number());
  if (b.low() > 0)
    if (auto exact = exact_quotient(a, b)) return *exact;
  if (b.is_number()) {
    std::int64_t n = b.number();
    if (n > 0) {
      // Pull out the part that divides exactly: floor((n*q + r) / n) = q + floor(r / n).
      std::vector<Term> exact, rest;
      for (Term& t : terms_of(a)) {
        if (t.factor % n == 0) {
          exact.push_back({t.factor / n, t.atoms});
        } else if (t.atoms.empty()) {
          exact.push_back({hone::floor_div(t.factor, n), {}});
          rest.push_back({hone::floor_mod(t.factor, n), {}});
        } else {
          rest.push_back(t);
        }
      }
      std::erase_if(exact, [](const Term& t) { return t.factor == 0; });
      if (!exact.empty())
        return from_terms(std::move(exact)) + floor_div(from_terms(std::move(rest)), b);
      // floor(floor(x / m) / n) = floor(x / (m n)).
      if (!a.is_number() && a.expr()->kind == Kind::floor_div && a.expr()->b.is_number() &&
          a.expr()->b.number() > 0)
        return floor_div(a.expr()->a, Dim(checked_mul(a.expr()->b.number(), n)));
    }
    std::int64_t lo = hone::floor_div(a.low(), n), hi = hone::floor_div(a.high(), n);
    return binary(Kind::floor_div, a, b, std::min(lo, hi), std::max(lo, hi));
  }
  std::int64_t q[] = {hone::floor_div(a.low(), b.low()), hone::floor_div(a.low(), b.high()),
                      hone::floor_div(a.high(), b.low()), hone::floor_div(a.high(), b.high())};
  return binary(Kind::floor_div, a, b, *std::min_element(q, q + 4), *std::max_element(q, q + 4));
}

Dim ceil_div(const Dim& a, const Dim& b) { return floor_div(a + b - Dim(1), b); }

Dim mod(const Dim& a, const Dim& b) {
  if (b.low() <= 0 && b.high() >= 0)
    throw UserError("size ", a, " modulo ", b,
                    ", which can be zero; give the size a lower bound of at least 1");
  if (a.is_number() && b.is_number()) return hone::floor_mod(a.number(), b.number());
  if (b.is_number() && divide_exactly(a, b.number())) return 0;
  if (b.low() > 0 && a.low() >= 0 && a.high() < b.low()) return a;
  if (b.low() > 0 && exact_quotient(a, b)) return 0;
  std::int64_t lo = b.low() > 0 ? 0 : b.low() + 1, hi = b.low() > 0 ? b.high() - 1 : 0;
  if (b.low() > 0 && a.low() >= 0) hi = std::min(hi, a.high());
  return binary(Kind::mod, a, b, lo, hi);
}

Dim min(const Dim& a, const Dim& b) {
  Dim difference = a - b;
  if (difference.high() <= 0) return a;
  if (difference.low() >= 0) return b;
  bool swap = compare(b, a) < 0;
  return binary(Kind::min, swap ? b : a, swap ? a : b, std::min(a.low(), b.low()),
                std::min(a.high(), b.high()));
}

Dim max(const Dim& a, const Dim& b) {
  Dim difference = a - b;
  if (difference.high() <= 0) return b;
  if (difference.low() >= 0) return a;
  bool swap = compare(b, a) < 0;
  return binary(Kind::max, swap ? b : a, swap ? a : b, std::max(a.low(), b.low()),
                std::max(a.high(), b.high()));
}

Dim equal(const Dim& a, const Dim& b) {
  if (auto proved = prove_equal(a, b)) return *proved ? 1 : 0;
  bool swap = compare(b, a) < 0;
  return binary(Kind::equal, swap ? b : a, swap ? a : b, 0, 1);
}

std::optional<bool> prove_equal(const Dim& a, const Dim& b) {
  Dim d = a - b;
  if (d.is_number()) return d.number() == 0;
  if (d.low() > 0 || d.high() < 0) return false;
  return std::nullopt;
}

std::optional<bool> prove_less(const Dim& a, const Dim& b) {
  if (a.high() < b.low()) return true;
  if (a.low() >= b.high()) return false;
  Dim d = a - b;
  if (d.high() < 0) return true;
  if (d.low() >= 0) return false;
  return std::nullopt;
}

Dim product(std::span<const Dim> dims) {
  Dim p = 1;
  for (const Dim& d : dims) p = p * d;
  return p;
}

std::ostream& operator<<(std::ostream& out, const Dim& d) {
  if (d.is_number()) return out << d.number();
  const DimExpr& e = *d.expr();
  static constexpr std::string_view calls[] = {"", "", "floor_div", "mod", "min", "max", "equal"};
  if (e.kind == Kind::symbol) return out << e.name;
  if (e.kind != Kind::sum)
    return out << calls[static_cast<int>(e.kind)] << "(" << e.a << "," << e.b << ")";
  out << "(";
  bool first = true;
  for (const Term& t : e.terms) {
    if (!first) out << "+";
    first = false;
    if (t.factor != 1 || t.atoms.empty()) out << t.factor << (t.atoms.empty() ? "" : "*");
    for (std::size_t i = 0; i < t.atoms.size(); ++i) out << (i ? "*" : "") << t.atoms[i];
  }
  return out << ")";
}

namespace {

// expr := term ('+' term)*   term := factor ('*' factor)*
// factor := number | '(' expr ')' | name '(' expr ',' expr ')' | name
class DimParser {
 public:
  DimParser(std::string_view text, const std::function<Dim(std::string_view)>& symbol)
      : text_(text), symbol_(symbol) {}

  Dim parse() {
    Dim d = sum();
    if (at_ != text_.size()) fail("unexpected text");
    return d;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw UserError("size '", text_, "': ", what, " at character ", at_);
  }
  bool eat(char c) {
    if (at_ < text_.size() && text_[at_] == c) return ++at_, true;
    return false;
  }
  void expect(char c) {
    if (!eat(c)) fail(cat("expected '", c, "'"));
  }
  Dim sum() {
    if (++depth_ > 100) fail("nested more than 100 levels deep");
    Dim d = term();
    while (eat('+')) d = d + term();
    --depth_;
    return d;
  }
  Dim term() {
    Dim d = factor();
    while (eat('*')) d = d * factor();
    return d;
  }
  Dim factor() {
    if (eat('(')) {
      Dim d = sum();
      expect(')');
      return d;
    }
    bool negative = eat('-');
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      std::int64_t n = 0;
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])))
        n = checked_add(checked_mul(n, 10), text_[at_++] - '0');
      return negative ? -n : n;
    }
    if (negative) fail("expected a number");
    std::size_t start = at_;
    while (at_ < text_.size() &&
           std::string_view("()+*,").find(text_[at_]) == std::string_view::npos)
      ++at_;
    std::string_view name = text_.substr(start, at_ - start);
    if (name.empty()) fail("expected a number, a symbol or '('");
    using Call = Dim (*)(const Dim&, const Dim&);
    static constexpr std::pair<std::string_view, Call> calls[] = {
        {"floor_div", floor_div}, {"mod", mod}, {"min", min}, {"max", max}, {"equal", equal}};
    for (auto [spelled, call] : calls)
      if (name == spelled && eat('(')) {
        Dim a = sum();
        expect(',');
        Dim b = sum();
        expect(')');
        return call(a, b);
      }
    return symbol_(name);
  }

  std::string_view text_;
  const std::function<Dim(std::string_view)>& symbol_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Dim parse_dim(std::string_view text, const std::function<Dim(std::string_view)>& symbol) {
  return DimParser(text, symbol).parse();
}

}  // namespace hone
