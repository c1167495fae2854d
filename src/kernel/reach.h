// Which memory a chunk of a kernel may access, derived from its positions without running it.
#pragma once

#include <optional>

#include "kernel/kernel.h"

namespace hone {

// From the first to the last element, both inclusive.
struct Reach {
  std::int64_t first, last;
  bool meets(const Reach& other) const { return first <= other.last && other.first <= last; }
};

// A range that contains all that one chunk accesses of a parameter; it may access less. Nullopt if
// that is unknown, which includes kernels with sizes or groups, or if it accesses nothing.
std::optional<Reach> reach(const Kernel&, int param, std::int64_t chunk);

}  // namespace hone
