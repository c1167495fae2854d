// Contents of small integer values as sizes, when they follow from the operands' contents
// (Op::contents). This is the only way from values to shapes. Not constant folding of large data.
#pragma once

#include "ir/graph.h"

namespace hone {

// For operands whose contents are all numbers: evaluates the op.
std::optional<Dims> contents_by_value(const Call&, const Type& result);

// For movement ops: evaluates the op on positions, which then select operand elements. Operands
// from `first_index` on are indices, not moved, and must be numbers.
std::optional<Dims> contents_by_position(const Call&, const Type& result, std::size_t first_index);
inline std::optional<Dims> contents_moved(const Call& c, const Type& result) {
  return contents_by_position(c, result, c.operands.size());
}
// The same where only operand 0 is moved.
inline std::optional<Dims> contents_indexed(const Call& c, const Type& result) {
  return contents_by_position(c, result, 1);
}

// Element by element: numbers by evaluating the op, other sizes by the given rule, which may
// decline. Also declines when the sizes may exceed the dtype's range.
using DimRule = std::optional<Dim> (*)(std::span<const Dim> elements);
std::optional<Dims> contents_each(const Call&, const Type& result, DimRule);

// A reduction over attribute "axes" with a function that joins two sizes.
std::optional<Dims> contents_reduced(const Call&, const Type& result, DimRule join);

}  // namespace hone
