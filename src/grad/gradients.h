// Reverse-mode derivatives (Linnainmaa, BIT 16, 1976). What the derivative of an operation is
// stands in its Op; here they are composed over a graph.
#pragma once

#include <span>

#include "ir/op.h"

namespace hone {

// The sum over i of d ys[i] / d xs[j], weighed by dys[i] (of the type of ys[i]): one value of the
// type of each x. An x counts as a parameter: what it is made of is constant. Of an x that no y
// depends on it is zero. Throws UserError naming the operation where a y depends on an x through
// one that has no gradient, or when an x does not have a float dtype.
Values gradients(std::span<const Value> ys, std::span<const Value> dys, std::span<const Value> xs);

}  // namespace hone
