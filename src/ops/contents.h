// Contents of small integer values as sizes, when they follow from the operands' contents
// (Op::contents). The only way from values to shapes. Not constant folding of large data.
#pragma once

#include "ir/op.h"

namespace hone {

// All operands' contents are numbers: the op's own meaning, evaluated.
std::optional<Dims> contents_by_value(const Call&, const Type& result);

// Movement: the op is evaluated on positions, which then pick operand elements. Operands from
// `first_index` on are not moved but indices, and must be numbers.
std::optional<Dims> contents_by_position(const Call&, const Type& result, std::size_t first_index);
inline std::optional<Dims> contents_moved(const Call& c, const Type& result) {
  return contents_by_position(c, result, c.operands.size());
}
// The same where only operand 0 is moved.
inline std::optional<Dims> contents_indexed(const Call& c, const Type& result) {
  return contents_by_position(c, result, 1);
}

// Element by element: numbers by the op's meaning, the rest by the given rule, which may decline.
// Declined as well when the sizes may leave the dtype's range.
using DimRule = std::optional<Dim> (*)(std::span<const Dim> elements);
std::optional<Dims> contents_each(const Call&, const Type& result, DimRule);

// A reduction over attrs "axes" that joins two sizes.
std::optional<Dims> contents_reduced(const Call&, const Type& result, DimRule join);

}  // namespace hone
