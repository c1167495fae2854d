// When numbers count as equal: the rule for compiled code against the reference (docs/numbers.md),
// and plain tolerances for a model's own test sets.
#pragma once

#include <iosfwd>

#include "ir/evaluation.h"

namespace hone {

struct Comparison {
  bool ok = true;
  double max_abs_error = 0;      // over elements where both are finite
  double max_rel_error = 0;      // max_abs_error / max|expected|
  double limit = 0;              // allowed absolute error (at the worst element)
  std::int64_t undecided = 0;    // elements on which the two references disagree
  std::int64_t first_bad = -1;   // flat index
  double got = 0, expected = 0;  // at first_bad
  std::string problem;           // dtype or sizes differ

  explicit operator bool() const { return ok; }
  void differs(std::size_t i, double got, double expected);  // at element i
};
std::ostream& operator<<(std::ostream&, const Comparison&);

// One output (or samples of it) against the two modes of the reference:
// |got - wide| <= 4 max|strict - wide| + 16 eps max|wide|, infinities and NaN where strict and wide
// agree on them; integers equal where strict and wide are.
Comparison accept(const Wide& got, const Wide& strict, const Wide& wide);
Comparison accept(const Array& got, const Wide& strict, const Wide& wide);
// For two values, at least one of them infinite or NaN: whether both are NaN, or they are equal.
bool same_special(double a, double b);

// |got - expected| <= absolute + relative |expected|; infinities and NaN agree.
Comparison within(const Array& got, const Array& expected, double absolute, double relative);

// The spacing of a float dtype at 1.
double epsilon_of(DType);

}  // namespace hone
