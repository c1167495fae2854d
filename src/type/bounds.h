// Sizes that are bounded by other sizes: upper and lower bounds of expressions over them. Does not
// know what the sizes describe.
#pragma once

#include <span>
#include <string_view>

#include "type/type.h"

namespace hone {

// A symbol in the range 0 to `most`, where `most` may contain other symbols.
struct DimBound {
  Dim symbol, most;
};

// Upper and lower bound of d, without the bounded symbols, for all their values. Later bounds may
// contain earlier symbols. Tight where d is a sum of products of sizes.
Dim largest(const Dim& d, std::span<const DimBound>);
Dim smallest(const Dim& d, std::span<const DimBound>);
// The type with each size at its upper bound.
Type largest(const Type&, std::span<const DimBound>);

// A limit that is checked before memory is used: a product of sizes is at most `most`.
struct SizeLimit {
  Dim product, most;
};
// Upper bound of d, from the bounds alone or from a limit on a product that divides all its terms.
Dim largest(const Dim& d, std::span<const DimBound>, std::span<const SizeLimit>);

// Whether the expression contains the symbol of that name.
bool holds_symbol(const Dim&, std::string_view name);

}  // namespace hone
