// Lowering of the operations whose elements cannot be computed one by one in any order: cumulative,
// scatter, sort. Each is a kernel of its own; its producers are fused, its consumers are not.
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

// Adds the statements for the node of `v`; may add rows of scratch to the kernel, whose parameters
// are filled in.
void lower_ordered(Lowering&, Kernel&, Value v, std::span<const OrderedResult> results);

}  // namespace hone
