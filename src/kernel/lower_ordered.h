// Lowering of the operations whose elements cannot be computed one by one in any order: cumulative,
// scatter, and sort (sort.h). Each has kernels of its own; its producers are fused, its consumers
// are not.
#pragma once

#include "kernel/lower.h"

namespace hone {

bool is_ordered_op(const Op&);

// Where a result of the node goes.
struct OrderedResult {
  std::uint32_t index = 0;
  Memory memory;
  bool updates = false;  // the operand that a scatter changes is there already
};

// Adds the statements for the node of `v`, which is no sort.
void lower_ordered(Lowering&, Value v, std::span<const OrderedResult> results);

// Opens a loop over every axis but one; gives the position with 0 there.
Dims open_other_axes(Lowering&, const Shape&, int axis);
void close_other_axes(Lowering&, const Shape&, int axis);

}  // namespace hone
