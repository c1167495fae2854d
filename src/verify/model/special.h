// Checks that a plan keeps NaN and infinities, for functions that are too large to evaluate as a
// whole. Does not check other numbers.
#pragma once

#include <string>
#include <vector>

#include "ir/function.h"
#include "type/array.h"

namespace hone {

// Compares a few elements of float results with the reference, if they need little work: an element
// of a product after one or two others, but not of a deep network. Returns the first that is NaN or
// infinite where the reference is not, or the reverse; else an empty string.
std::string wrong_special(const Function&, const std::vector<Array>& inputs,
                          const std::vector<Array>& got);

}  // namespace hone
