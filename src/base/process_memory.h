// What the system and malloc say about this process's memory, all threads together. Figures for
// people and reports; nothing is decided by them.
#pragma once

#include <cstddef>

namespace hone {

// Resident now, and the most that ever was (VmRSS, VmHWM); zeros where the system does not tell.
struct Resident {
  std::size_t bytes = 0, peak = 0;
};
Resident resident_memory();

// Bytes that malloc has given out and of anonymous memory mapped to hold code: what a library that
// compiles for itself takes. Knows only the C library's own malloc.
std::size_t taken_memory();

}  // namespace hone
