// Whether a session keeps within a limit of memory.
#pragma once

#include "runtime/memory_report.h"

namespace hone {

// peak() bytes that another process stated are enough. What libraries take is measured, and differs
// by a few kilobytes from process to process.
inline bool fits(const MemoryReport& m, std::int64_t limit) {
  constexpr std::size_t difference = 16 << 10;
  return m.peak() <= static_cast<std::size_t>(limit) + (m.library > 0 ? difference : 0);
}

}  // namespace hone
