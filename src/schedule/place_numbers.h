// Offsets for memory of constant sizes: the best of several greedy orders.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace hone {

struct Extent {
  std::int64_t bytes, first, last;  // live from step `first` to step `last`
};

using Offsets = std::vector<std::int64_t>;
using Sequence = std::vector<std::uint32_t>;

// Stops searching once the arena needs no more than `enough` bytes.
Offsets place_numbers(const std::vector<Extent>&, std::int64_t enough);
std::int64_t end_of(const std::vector<Extent>&, const Offsets&);
// The step at which the most bytes are live, and their number.
std::pair<std::int64_t, std::int64_t> fullest_step(const std::vector<Extent>&);

template <class Less>
Sequence sorted(std::size_t n, Less less) {
  Sequence s(n);
  std::iota(s.begin(), s.end(), 0u);
  std::stable_sort(s.begin(), s.end(), less);
  return s;
}

}  // namespace hone
