// Intervals, one per element of a tensor.
#pragma once

#include <cmath>
#include <vector>

#include "ir/evaluation.h"

namespace hone {

// Elements are in [low, high]. If low is NaN and high is not, nothing is known and NaN is possible;
// a positive high then means that order or rounding decides whether it is NaN: products that
// overflow on the way, values that may be zero or infinite, an exponent that may be an integer. If
// both are NaN, the element is NaN. Integers and bools: low <= high in the dtype's order.
struct Enclosure {
  Wide low, high;
  // Whether some element depends on a step whose outcome rounding decides: a comparison, an
  // integer, a position, a branch.
  bool hangs_on_step = false;

  const std::vector<std::int64_t>& dims() const { return low.dims; }
  DType dtype() const { return low.dtype; }
  bool is_point() const;  // one number for every element
  bool hangs_on_order(std::size_t i) const { return std::isnan(low.reals[i]) && high.reals[i] > 0; }
};

}  // namespace hone
