// Sizes for the symbols of a function that satisfy its conditions, for checks, timing and made-up
// inputs. Searches are bounded and depend on nothing but their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "ref/evaluate.h"
#include "type/bounds.h"

namespace hone {

// Whether the guards hold for these sizes.
bool guards_hold(const std::vector<Guard>&, const Sizing& sizes);

// Adds a value for each data-dependent size: about half of its upper bound, less if that is large,
// such that the checks hold, as far as a bounded search finds such values.
Sizing with_measured(Sizing, const std::vector<DimBound>&, std::span<const DimCheck> checks = {});
// The sizes with other values for data-dependent ones: few, all different, in both orders; and the
// upper bounds. Only those for which the checks hold.
std::vector<Sizing> other_measured(const Sizing&, const std::vector<DimBound>&,
                                   std::span<const DimCheck> checks);
// Whether the checks hold for these sizes; ignores checks of other sizes.
bool checks_hold(std::span<const DimCheck> checks, const Sizing&);

// Sizes for the symbols of the types that satisfy the guards; tries small ones first. Empty when a
// bounded search finds none, or only such that arrays of these types need more than a GiB.
std::optional<Sizing> sample_sizes(const std::vector<Type>&, const std::vector<Guard>&);

// Different odd sizes for the symbols, starting at `least` as far as their bounds allow, so that
// errors in rows, strides and tails show. Empty when they do not satisfy the guards.
std::optional<Sizing> odd_sizes(const std::vector<Type>&, const std::vector<Guard>&,
                                std::int64_t least);

}  // namespace hone
