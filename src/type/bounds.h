// Sizes that are bounded by other sizes: how large and how small expressions of them can be. Knows
// nothing of what they are sizes of.
#pragma once

#include <span>
#include <string_view>

#include "type/type.h"

namespace hone {

// A symbol that stands for 0 to `most`, where `most` may hold other symbols.
struct DimBound {
  Dim symbol, most;
};

// Upper and lower bound of d for all values of the bounded symbols, which are not in it; later
// bounds may hold earlier symbols. Tight where d is a sum of products of sizes.
Dim largest(const Dim& d, std::span<const DimBound>);
Dim smallest(const Dim& d, std::span<const DimBound>);
// The type with each size as large as it can be.
Type largest(const Type&, std::span<const DimBound>);

// What is checked before memory of it is used: a product of sizes that is at most `most`.
struct SizeLimit {
  Dim product, most;
};
// Upper bound of d, by the bounds alone or by a limit of a product that all its terms have.
Dim largest(const Dim& d, std::span<const DimBound>, std::span<const SizeLimit>);

// Whether the expression has the symbol of that name in it.
bool holds_symbol(const Dim&, std::string_view name);

}  // namespace hone
