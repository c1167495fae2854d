// Arithmetic on positions inside a kernel: Dims over loop variables and index registers with known,
// possibly symbolic ranges. Not for values of tensors.
#pragma once

#include <span>
#include <unordered_map>

#include "kernel/kernel.h"

namespace hone {

class Positions {
 public:
  // A new variable, from 0 to extent - 1.
  Dim add_loop(const Dim& extent);
  Dim add_register(const Dim& extent);
  VarId loop_count() const { return loops_; }
  RegId register_count() const { return registers_; }
  // A register that is not used in positions.
  RegId new_register() { return registers_++; }

  // The extent of a variable; 0 for a size.
  Dim extent(const Dim& symbol) const;

  // a / b and a mod b; needs a >= 0 and b > 0 wherever they are evaluated.
  Dim quotient(const Dim& a, const Dim& b) const;
  Dim remainder(const Dim& a, const Dim& b) const;

  bool proves_nonnegative(const Dim&) const;
  bool proves_below(const Dim& a, const Dim& limit) const;

  // Row-major number of a position, and its inverse.
  static Dim linear(std::span<const Dim> position, std::span<const Dim> sizes);
  Dims split(const Dim& linear, std::span<const Dim> sizes) const;
  // The position, in a tensor of sizes `from`, of the element at `position` of a tensor of sizes
  // `to` that holds the same elements in row-major order.
  Dims reshape(std::span<const Dim> position, const Dims& to, const Dims& from) const;

 private:
  struct Units {
    std::int64_t unit = 1;
    Dim whole = 0, rest = 0;
  };
  Units in_units(const Dim& a, const Dim& b) const;
  // An upper bound of `a`, if it is a sum that increases with every variable.
  std::optional<Dim> upper(const Dim& a) const;
  std::optional<Dim> lower(const Dim& a) const;
  std::optional<Dim> extreme(const Dim& a, bool largest) const;

  std::unordered_map<Dim, Dim, DimHash> extents_;
  VarId loops_ = 0;
  RegId registers_ = 0;
};

// d with every floor_div(a, b) * b + mod(a, b), also with a common factor, simplified to a.
Dim joined(const Dim& d);
// True if this symbol occurs in d.
bool mentions(const Dim& d, const Dim& symbol);
// d with some symbols replaced.
struct Replacement {
  Dim symbol, by;
};
Dim replace(const Dim& d, std::span<const Replacement>);
// The factor of `symbol` in d, if d is linear in it.
std::optional<Dim> stride_of(const Dim& d, const Dim& symbol);

// True if d and all its subexpressions fit in 32 bits.
bool fits_32_bits(const Dim& d);

}  // namespace hone
