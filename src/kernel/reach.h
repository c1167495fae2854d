// Which memory a chunk of a kernel may touch, read off its positions without running it.
#pragma once

#include <optional>

#include "kernel/kernel.h"

namespace hone {

// Elements from the first to the last, both included.
struct Reach {
  std::int64_t first, last;
  bool meets(const Reach& other) const { return first <= other.last && other.first <= last; }
};

// What one chunk reads or writes of a parameter lies in here; less of it may be touched. Nothing
// where that is not known: where there are sizes or groups, or where nothing is touched.
std::optional<Reach> reach(const Kernel&, int param, std::int64_t chunk);

}  // namespace hone
