// Derivatives of core ops that are longer than the ops themselves; the others are with the ops.
#pragma once

#include <span>

#include "ir/graph.h"

namespace hone {

// A product from which single elements can be excluded: zeros are counted separately.
struct Product {
  Value x, is_zero;
  Value rest, zeros;  // x with zeros replaced by 1; and 1 where x is 0

  explicit Product(Value x);
  // For each element, the product of the others, given that of all `rest` and the sum of `zeros`.
  Value of_others(Value of_rest, Value zero_count) const;
};

namespace grads {

using Rule = Values(const Call&, std::span<const Value> results, std::span<const Value> dy);

Rule zero;       // constant almost everywhere
Rule remainder;  // of x - q * y, for a whole number q that is constant almost everywhere
Rule reshape, transpose, broadcast, slice, pad, concat, reverse;
Rule gather, scatter, sort, dynamic_slice, dynamic_update;
Rule reduce_sum, reduce_prod, reduce_extreme, cumulative, dot, conv, window;

}  // namespace grads

}  // namespace hone
