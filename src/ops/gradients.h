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

// A product of some elements, as it is needed to leave one of them out: 0 stands aside.
struct Product {
  Value x, is_zero;
  Value rest, zeros;  // x with 1 for 0, and 1 where it is 0

  explicit Product(Value x);
  // The product without each element itself, from that of all `rest` and the sum of all `zeros`.
  Value of_others(Value of_rest, Value zero_count) const;
};

namespace grads {

using Rule = Values(const Call&, std::span<const Value> results, std::span<const Value> dy);

Rule zero;  // constant almost everywhere
Rule add, sub, mul, div, pow, maximum, minimum;
Rule neg, abs, exp, log, sqrt, tanh, erf, sin, cos;
Rule select, cast, replay;
Rule reshape, transpose, broadcast, slice, pad, concat, reverse;
Rule gather, scatter, sort, dynamic_slice, dynamic_update;
Rule reduce_sum, reduce_prod, reduce_extreme, reduce_window, cumulative, dot, conv;

}  // namespace grads

}  // namespace hone
