// Values at which an operation that reads an operand changes its behavior.
#pragma once

#include <vector>

#include "ir/function.h"

namespace hone {

// For each parameter, the edges of the operations that read it, directly or after a move, cast or
// sign change. An operation has Op::edges, a cast the limits of the dtype and the ties next to
// them. Empty if the function sums or multiplies elements with each other: large numbers could
// overflow in one order and not in another.
std::vector<std::vector<double>> edges_of_params(const Function&);

}  // namespace hone
