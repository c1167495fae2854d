// Arithmetic on positions inside a kernel: Dims over loop variables and index registers whose
// ranges are known, also where the ranges are symbols. Not for values of tensors.
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
  // A register that no position mentions.
  RegId new_register() { return registers_++; }

  // The extent of a variable; 0 for a size.
  Dim extent(const Dim& symbol) const;

  // a / b and a mod b, for a >= 0 and b > 0 wherever they are evaluated.
  Dim quotient(const Dim& a, const Dim& b) const;
  Dim remainder(const Dim& a, const Dim& b) const;

  bool proves_nonnegative(const Dim&) const;
  bool proves_below(const Dim& a, const Dim& limit) const;

  // Row-major number of a position, and back.
  static Dim linear(std::span<const Dim> position, std::span<const Dim> sizes);
  Dims split(const Dim& linear, std::span<const Dim> sizes) const;
  // Where the element at `position` of a tensor of sizes `to` lies in one of sizes `from` that
  // holds the same elements in row-major order.
  Dims reshape(std::span<const Dim> position, const Dims& to, const Dims& from) const;

 private:
  struct Units {
    std::int64_t unit = 1;
    Dim whole = 0, rest = 0;
  };
  Units in_units(const Dim& a, const Dim& b) const;
  // Nothing in `a` is larger, when it is a sum that grows with every variable.
  std::optional<Dim> upper(const Dim& a) const;
  std::optional<Dim> lower(const Dim& a) const;
  std::optional<Dim> extreme(const Dim& a, bool largest) const;

  std::unordered_map<Dim, Dim, DimHash> extents_;
  VarId loops_ = 0;
  RegId registers_ = 0;
};

// d with every floor_div(a, b) * b + mod(a, b) in it, also times a factor, written as a.
Dim joined(const Dim& d);
// Whether a variable with this symbol occurs in d.
bool mentions(const Dim& d, const Dim& symbol);
// d with some symbols replaced.
struct Replacement {
  Dim symbol, by;
};
Dim replace(const Dim& d, std::span<const Replacement>);
// The factor of `symbol` in d, when d is that factor times the symbol plus something without it.
std::optional<Dim> stride_of(const Dim& d, const Dim& symbol);

// Whether d and everything it is made of fits in 32 bits.
bool fits_32_bits(const Dim& d);

}  // namespace hone
