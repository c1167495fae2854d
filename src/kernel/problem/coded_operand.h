// An operand of a contraction that is computed elementwise from numbers of a narrower dtype and
// other values such as scales: dequantised weights. Finds the parts, writes no kernel.
#pragma once

#include <optional>
#include <vector>

#include "kernel/problem/anchored.h"

namespace hone {

struct CodedOperand {
  Value codes;               // with as many elements as the operand
  std::vector<Value> moves;  // reshapes and transposes between the two, the operand's side first
  // The operand is `factor` times the codes, which were only widened; both as they are below
  // `moves`. Null: it is computed from the codes in some other way.
  Value factor;

  // The position in the codes, or in the factor, of the operand's element `at`.
  std::optional<Dims> position(Dims at, const Positions&) const;
  // The codes, given in another graph, in the operand's order.
  Value in_order(Value codes) const;
};

// The ways to split the operand, best first: a factor costs less than work on each element.
std::vector<CodedOperand> coded_operands(Value operand, DType accumulate);

}  // namespace hone
