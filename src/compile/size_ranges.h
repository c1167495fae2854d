// Plans for sizes in ranges: sizes at which candidates are timed, and ranges in which other
// candidates are so much faster that they are worth a variant of their own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compile/choose.h"
#include "ir/function.h"
#include "plan/plan.h"

namespace hone {

// Up to two sizings beside the usual one, 8 or 64 times as large or as small in each symbol of the
// parameters as far as its range allows. Those that break a condition or are great work are left
// out.
std::vector<Sizing> sizes_beside(const Function&, const std::vector<Guard>& conditions,
                                 const Sizing& usual);

struct SizedChoices {
  Sizing sizes;                 // at which they were timed
  std::vector<Choice> choices;  // by spec
};
struct SizeRange {
  std::vector<Guard> guards;
  std::vector<Choice> choices;  // by spec
};

// Ranges that together hold all sizes, told apart by the product of the symbols. The usual choices
// serve everywhere but where others win by 5 % of what all groups take. `specs`: of each group.
std::vector<SizeRange> size_ranges(const Function&, std::span<const std::uint32_t> specs,
                                   const SizedChoices& usual, std::span<const SizedChoices> others);

}  // namespace hone
