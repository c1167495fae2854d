// Lowering of operations whose elements cannot be computed individually in any order: cumulative,
// scatter, and sort (sort.h). Each has kernels of its own; its producers are fused, its consumers
// are not.
#pragma once

#include "kernel/nest/lower.h"

namespace hone {

bool is_ordered_op(const Op&);

// Where a result of the node is stored.
struct OrderedResult {
  std::uint32_t index = 0;
  Memory memory;
  bool updates = false;  // the operand that a scatter changes is already there
};

// Adds the statements for the node of `v`, which is not a sort.
void lower_ordered(Lowering&, Value v, std::span<const OrderedResult> results);

// Opens a loop over every axis but one; returns the position with 0 on that axis.
Dims open_other_axes(Lowering&, const Shape&, int axis);
void close_other_axes(Lowering&, const Shape&, int axis);

}  // namespace hone
