// Reverse-mode derivatives (Linnainmaa, BIT 16, 1976): the rules of core ops, and their composition
// over a graph. An op without a rule is differentiated through its expansion.
#pragma once

#include <span>

#include "ir/op.h"

namespace hone {

// The sum over i of d ys[i] / d xs[j], weighed by dys[i] (of the type of ys[i]): one value of the
// type of each x. An x counts as a parameter: what it is made of is constant. Of an x that no y
// depends on it is zero. Throws UserError naming the operation where a y depends on an x through
// one that has no derivative here, or when an x is no float.
Values gradients(std::span<const Value> ys, std::span<const Value> dys, std::span<const Value> xs);

namespace grads {

using Rule = Values(const Call&, std::span<const Value> results, std::span<const Value> dy);

Rule zero;  // constant almost everywhere
Rule add, sub, mul, div, pow, maximum, minimum;
Rule neg, abs, exp, log, sqrt, tanh, erf, sin, cos;
Rule select, cast, replay;
Rule reshape, transpose, broadcast, slice, pad, concat, reverse;
Rule gather, dynamic_slice, dynamic_update;
Rule reduce_sum, reduce_extreme, cumulative, dot;

}  // namespace grads

}  // namespace hone
