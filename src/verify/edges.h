// Numbers at which what reads an operand changes its way.
#pragma once

#include <vector>

#include "ir/function.h"

namespace hone {

// For each parameter, those of the operations that read it, also when it was moved, cast or its
// sign was changed before: of an operation its Op::edges, of a cast the ends of the dtype and the
// ties next to them. None where the function sums or multiplies elements with one another: large
// numbers would overflow in one order and not in another.
std::vector<std::vector<double>> edges_of_params(const Function&);

}  // namespace hone
