// Offsets in one arena for memory with known lifetimes. Knows sizes and times, not what lies there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "type/dim.h"

namespace hone {

struct Lifetime {
  Dim bytes = 0;
  std::int64_t first = 0, last = 0;  // steps, both inclusive
};

struct Placement {
  Dims offsets;   // multiples of 64
  Dim bytes = 0;  // of the arena
  // No arena can be smaller: the greatest sum of what lives at one step (sizes rounded up to 64).
  Dim lower_bound = 0;
};

// Two lifetimes that meet get memory that does not, for every value of the symbols.
Placement place(std::span<const Lifetime>);

}  // namespace hone
