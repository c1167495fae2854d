// An operand of a contraction that is made, element by element, of numbers of a narrower dtype and
// of other values such as scales: dequantised weights. Finds the parts, writes no kernel.
#pragma once

#include <optional>
#include <vector>

#include "kernel/anchored.h"

namespace hone {

struct CodedOperand {
  Value codes;               // with as many elements as the operand
  std::vector<Value> moves;  // reshapes and transposes between the two, the operand's side first
  // The operand is the product of the codes, whose dtype only was widened, and of this; both as
  // they are below `moves`. Null: it is made of the codes in some other way.
  Value factor;

  // The position in the codes, or in the factor, of the operand's element `at`.
  std::optional<Dims> position(Dims at, const Positions&) const;
  // The codes, given in another graph, in the operand's order.
  Value in_order(Value codes) const;
};

// The ways to take the operand apart, the better first: a factor costs less than anything that is
// done with each element.
std::vector<CodedOperand> coded_operands(Value operand, DType accumulate);

}  // namespace hone
