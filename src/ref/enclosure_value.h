// Intervals, one for each element of a tensor.
#pragma once

#include <cmath>
#include <vector>

#include "ir/op.h"

namespace hone {

// Elements lie in [low, high]. Where low is NaN and high is not, nothing is known and NaN is
// possible; a positive high says that order or rounding decides whether it is: of products that
// overflow on the way, of what may be zero or infinite, of an exponent that may be whole. Where
// both are NaN, the element is NaN. Integers and bools: low <= high in the order of the dtype.
struct Enclosure {
  Wide low, high;
  // Whether some element is made of a step whose outcome rounding decides: of a comparison, a whole
  // number, a position, a branch.
  bool hangs_on_step = false;

  const std::vector<std::int64_t>& dims() const { return low.dims; }
  DType dtype() const { return low.dtype; }
  bool is_point() const;  // one number for every element
  bool hangs_on_order(std::size_t i) const { return std::isnan(low.reals[i]) && high.reals[i] > 0; }
};

}  // namespace hone
