// Reverse-mode derivatives (Linnainmaa, BIT 16, 1976). The derivative of an operation is in its Op;
// here they are composed over a graph.
#pragma once

#include <span>

#include "ir/graph.h"

namespace hone {

// For each x, the sum over i of d ys[i] / d xs[j], weighted by dys[i] (of the type of ys[i]), in
// the type of x: zero if no y depends on x. Each x is an independent parameter: the values it
// depends on are constant. Throws UserError naming the operation if a y depends on an x through one
// without a gradient, or if an x does not have a float dtype.
Values gradients(std::span<const Value> ys, std::span<const Value> dys, std::span<const Value> xs);

}  // namespace hone
