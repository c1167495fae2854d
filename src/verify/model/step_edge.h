// For results of another program that differ from ours because rounding decided a step, such as the
// next quantized number: neither is wrong. Not for compiled code (see explanation.h).
#pragma once

#include <vector>

#include "verify/sample.h"

namespace hone {

// Whether each element of `got` and `expected` is within the tolerance of results that the function
// gives when its numbers are rounded slightly differently. Use it after the tolerance alone failed,
// because it evaluates the function up to thirty times. False for functions without steps or of
// more than about a billion operations.
bool differs_by_a_step(const Function&, const Sizing&, const std::vector<Array>& inputs,
                       std::size_t result, const Array& got, const Array& expected, double atol,
                       double rtol);

}  // namespace hone
