// Bounds instead of numbers: for every element of a function's results, the interval in which each
// evaluation lies that docs/numbers.md allows. Says what rounding can explain, and nothing more:
// where a decision (a comparison, floor, sort, argmax, a cast to an integer) hangs on rounding, all
// its outcomes are inside. Slower than one evaluation by a small factor.
#pragma once

#include <cmath>

#include "ref/compare.h"
#include "ref/evaluate.h"

namespace hone {

// Elements lie in [low, high]. Where low is NaN and high is not, nothing is known and NaN is
// possible; a positive high says that the element hangs on the order of products that overflow on
// the way. Where both are NaN, the element is NaN. Integers and bools: low <= high in the order of
// the dtype.
struct Enclosure {
  Wide low, high;

  const std::vector<std::int64_t>& dims() const { return low.dims; }
  DType dtype() const { return low.dtype; }
  bool is_point() const;  // one number for every element
  bool hangs_on_order(std::size_t i) const { return std::isnan(low.reals[i]) && high.reals[i] > 0; }
};

// Throws as evaluate() does.
std::vector<Enclosure> enclose(const Function&, std::span<const Array> inputs);

// Whether every element lies inside; what nothing is known of counts as undecided.
Comparison accept(const Array& got, const Enclosure&);

}  // namespace hone
