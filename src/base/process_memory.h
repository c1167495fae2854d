// What the system and malloc report about this process's memory, all threads together. For display
// and reports; nothing is decided by it.
#pragma once

#include <cstddef>

namespace hone {

// Resident memory now, and its peak (VmRSS, VmHWM); zeros where the system does not report it.
struct Resident {
  std::size_t bytes = 0, peak = 0;
};
Resident resident_memory();

// Bytes allocated by malloc plus anonymous executable mappings, which a library with its own JIT
// uses. Covers only the C library's own malloc.
std::size_t taken_memory();

}  // namespace hone
