// Whether a plan keeps NaN and infinities, for functions that are too much work to evaluate whole.
// Says nothing of other numbers.
#pragma once

#include <string>
#include <vector>

#include "ir/function.h"
#include "type/array.h"

namespace hone {

// Compares a few elements of float results with the reference, where those need little work: an
// element of a product behind one or two others, but not one of a deep network. Empty, or the first
// that is NaN or infinite where the reference is not, or the other way round.
std::string wrong_special(const Function&, const std::vector<Array>& inputs,
                          const std::vector<Array>& got);

}  // namespace hone
