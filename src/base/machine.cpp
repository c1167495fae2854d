#include "base/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace hone {

namespace {

// The value of the first line "key : value".
std::string line_of(const char* file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == line.npos ? "" : line.substr(start);
  }
  return {};
}

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

std::int64_t told(int name) { return std::max<std::int64_t>(0, ::sysconf(name)); }

}  // namespace

Machine this_machine() {
  return {.processor = line_of("/proc/cpuinfo", "model name"),
          .processors = usable_processors(),
          .l1 = told(_SC_LEVEL1_DCACHE_SIZE),
          .l2 = told(_SC_LEVEL2_CACHE_SIZE),
          .l3 = told(_SC_LEVEL3_CACHE_SIZE),
          .memory = told(_SC_PHYS_PAGES) * told(_SC_PAGESIZE)};
}

}  // namespace hone
