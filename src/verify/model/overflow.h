// Finds where numbers leave the range of their dtype.
#pragma once

#include <string>
#include <vector>

#include "ir/function.h"

namespace hone {

// The first value, in the order of computation, that is infinite or NaN though what it is computed
// from is not, as "operation and origins"; also in the branches that the inputs take. Empty when
// there is none.
std::string first_overflow(const Function&, const std::vector<Array>& inputs);

}  // namespace hone
