// Offsets in one arena for memory with known lifetimes. Knows sizes and times, not contents.
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
  // No arena can be smaller: the maximum over steps of the sum of live sizes, each rounded up to
  // 64.
  Dim lower_bound = 0;
};

// Memory of overlapping lifetimes never overlaps, for every value of the symbols.
Placement place(std::span<const Lifetime>);

}  // namespace hone
