// Results of another program that differ from ours because rounding decided a step, such as the
// next quantized number: neither is wrong. Not the judge of compiled code (explanation.h).
#pragma once

#include <vector>

#include "verify/sample.h"

namespace hone {

// Whether both `got` and `expected` lie, element by element, where the function's own results lie
// when each number in it is rounded a little differently, or within the tolerance from there. Asked
// after the tolerance refused them, for it evaluates the function up to thirty times. False for
// functions without steps or of more than about a billion operations.
bool differs_by_a_step(const Function&, const Sizing&, const std::vector<Array>& inputs,
                       std::size_t result, const Array& got, const Array& expected, double atol,
                       double rtol);

}  // namespace hone
