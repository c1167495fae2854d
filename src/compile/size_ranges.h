// Variants for ranges of sizes: the sizes at which candidates are timed, and the ranges in which
// other candidates are fast enough to justify a separate variant.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compile/choose.h"
#include "ir/function.h"
#include "plan/plan.h"

namespace hone {

// Up to two sizings beside the usual one, 8 or 64 times as large or as small in each symbol of the
// parameters, as far as its range allows. Skips those that break a condition or need too much work.
std::vector<Sizing> sizes_beside(const Function&, const std::vector<Guard>& conditions,
                                 const Sizing& usual);

struct SizedChoices {
  Sizing sizes;                 // at which the candidates were timed
  std::vector<Choice> choices;  // by spec
};
struct SizeRange {
  Sizing sizes;  // some that the guards allow: those at which candidates were timed
  std::vector<Guard> guards;
  std::vector<Choice> choices;  // by spec
};

// Ranges that together cover all sizes, distinguished by the product of the symbols. The usual
// choices are used except where others save 5 % of the time of all groups. `specs`: the spec of
// each group.
std::vector<SizeRange> size_ranges(const Function&, std::span<const std::uint32_t> specs,
                                   const SizedChoices& usual, std::span<const SizedChoices> others);

}  // namespace hone
