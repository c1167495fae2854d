#include "base/process_memory.h"

#include <malloc.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

namespace hone {

Resident resident_memory() {
  Resident out;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::size_t kilobytes = 0;
    if (std::sscanf(line.c_str(), "VmRSS: %zu kB", &kilobytes) == 1) out.bytes = kilobytes << 10;
    if (std::sscanf(line.c_str(), "VmHWM: %zu kB", &kilobytes) == 1) out.peak = kilobytes << 10;
  }
  return out;
}

std::size_t taken_memory() {
  const struct mallinfo2 heap = ::mallinfo2();
  std::size_t bytes = heap.uordblks + heap.hblkhd;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char execute = '-';
    unsigned long inode = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*2c%c%*c %*x %*s %lu", &begin, &end,
                    &execute, &inode) == 4 &&
        execute == 'x' && inode == 0 && line.find('[') == std::string::npos)
      bytes += end - begin;
  }
  return bytes;
}

}  // namespace hone
