// A size known before the data: a number or an integer expression over named, bounded symbols.
// Expressions are canonical, so equal polynomials compare equal. Immutable and cheap to copy; safe
// to share between threads.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/few.h"

namespace hone {

struct DimExpr;
class Dim;
// The inline capacity covers the rank of most tensors.
using Dims = Few<Dim, 4>;

// What a symbol stands for. Sizes are identified by name, the others by number.
enum class SymbolKind : std::uint8_t {
  size,  // of a Function, known when it is called
  loop,  // a variable of a kernel's loop
  reg,   // an integer register of a kernel
};

class Dim {
 public:
  Dim(std::int64_t n = 0) : number_(n) {}  // NOLINT: numbers are dims
  Dim(const Dim& o) : number_(o.number_), expr_(o.expr_) {
    if (expr_) share();
  }
  Dim(Dim&& o) noexcept : number_(o.number_), expr_(std::exchange(o.expr_, nullptr)) {}
  Dim& operator=(Dim o) noexcept {
    std::swap(number_, o.number_);
    std::swap(expr_, o.expr_);
    return *this;
  }
  ~Dim() {
    if (expr_) drop();
  }

  // A size is identified by its name: in one Function, sizes with equal names are equal. Inclusive
  // bounds; 0 <= low <= high. Names are letters, digits, '_' and '.', not starting with a digit.
  static Dim symbol(std::string name, std::int64_t low, std::int64_t high);
  // A symbol of a kernel, equal to those of the same kind and number. Its display name, which no
  // size can have, is loop:3 or reg:3. Bounds may be negative.
  static Dim symbol(SymbolKind, std::int32_t number, std::int64_t low, std::int64_t high);

  bool is_number() const { return !expr_; }
  std::optional<std::int64_t> as_number() const {
    return expr_ ? std::nullopt : std::optional(number_);
  }
  // The number; asserts that this Dim is a number.
  std::int64_t number() const;

  // Greatest known lower and least known upper bound, from the symbols' bounds.
  std::int64_t low() const;
  std::int64_t high() const;

  // Value under an assignment of the symbols; throws UserError on overflow or an unknown symbol.
  std::int64_t eval(const std::function<std::int64_t(std::string_view)>& value) const;
  // Replaces symbols (those for which the function returns a Dim).
  Dim substitute(const std::function<std::optional<Dim>(const Dim& symbol)>& with) const;
  // The distinct symbols in it: sizes by name, then the others by kind and number.
  Dims symbols() const;
  bool is_symbol() const;
  // The symbol's name; asserts is_symbol().
  const std::string& name() const;
  // The number of a symbol of this kind; empty for anything else.
  std::optional<std::int32_t> number_of(SymbolKind) const;

  std::uint64_t hash() const;
  const DimExpr* expr() const { return expr_; }

  friend bool operator==(const Dim& a, const Dim& b) {
    if (a.expr_ == b.expr_) return a.expr_ || a.number_ == b.number_;
    return a.expr_ && b.expr_ && equal_expressions(a, b);
  }
  friend Dim operator*(const Dim& a, const Dim& b) {
    std::int64_t n;
    if (a.is_number() && b.is_number() && !__builtin_mul_overflow(a.number_, b.number_, &n))
      return n;
    return product_of(a, b);
  }

 private:
  friend struct DimExpr;
  static bool equal_expressions(const Dim& a, const Dim& b);
  static Dim product_of(const Dim& a, const Dim& b);
  void share() const;
  void drop() const;
  std::int64_t number_ = 0;
  const DimExpr* expr_ = nullptr;  // owned jointly by all Dims that refer to it
};

// An expression is a sum of products of atoms; an atom is a symbol or a non-polynomial operation on
// two expressions. Read by the printer, the evaluator in plans and the code generators.
struct DimExpr {
  enum class Kind : std::uint8_t { sum, symbol, floor_div, mod, min, max, equal };
  struct Term {
    std::int64_t factor = 1;
    Dims atoms;  // sorted; empty for the constant term
  };

  Kind kind;
  std::uint64_t hash = 0;
  std::int64_t low = 0, high = 0;
  SymbolKind symbol = SymbolKind::size;
  std::int32_t number = 0;            // of a symbol that is not a size
  std::string name = {};              // of a symbol
  std::vector<Term> terms = {};       // sum: sorted by atoms, constant first, no zero factor
  Dim a = 0, b = 0;                   // floor_div, mod, min, max, equal
  mutable std::uint32_t holders = 0;  // Dims; changed atomically

  static Dim make(DimExpr e);
};

struct DimHash {
  std::size_t operator()(const Dim& d) const { return d.hash(); }
};

// The terms of d as a sum; empty for 0.
std::vector<DimExpr::Term> terms_of(const Dim& d);

Dim operator+(const Dim&, const Dim&);
Dim operator-(const Dim&, const Dim&);
// a / b wherever b is not 0, if b is a single product that divides every term of a.
std::optional<Dim> exact_quotient(const Dim& a, const Dim& b);
// Division by a Dim whose bounds include 0 is a UserError.
Dim floor_div(const Dim&, const Dim&);
Dim ceil_div(const Dim&, const Dim&);
Dim mod(const Dim&, const Dim&);
Dim min(const Dim&, const Dim&);
Dim max(const Dim&, const Dim&);
// 1 where equal, else 0.
Dim equal(const Dim&, const Dim&);
// true / false when provable from structure or bounds.
std::optional<bool> prove_equal(const Dim&, const Dim&);
std::optional<bool> prove_less(const Dim&, const Dim&);

// String form: numbers and symbols as they are, sums and products in parentheses where needed,
// floor_div(a,b), mod(a,b), min(a,b), max(a,b), equal(a,b).
std::ostream& operator<<(std::ostream&, const Dim&);
// Parses the string form; `symbol` maps a name to its Dim. Throws UserError.
Dim parse_dim(std::string_view text, const std::function<Dim(std::string_view)>& symbol);

Dim product(std::span<const Dim>);

}  // namespace hone
