#include "base/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>

namespace hone {

namespace fs = std::filesystem;

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

// The smallest number in files of this name in a control group's directory and those above it. A
// group without a limit has a word in the file, or no such file.
std::int64_t least_limit(fs::path group, const fs::path& root, const char* file) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (group = group.relative_path();; group = group.parent_path()) {
    std::int64_t n = 0;
    if (std::ifstream in(root / group / file); in >> n) least = std::min(least, n);
    if (group.empty()) return least;
  }
}

}  // namespace

Machine this_machine() {
  return {.processor = line_of("/proc/cpuinfo", "model name"),
          .processors = usable_processors(),
          .l1 = told(_SC_LEVEL1_DCACHE_SIZE),
          .l2 = told(_SC_LEVEL2_CACHE_SIZE),
          .l3 = told(_SC_LEVEL3_CACHE_SIZE),
          .memory = told(_SC_PHYS_PAGES) * told(_SC_PAGESIZE)};
}

BusyTime busy_time() {
  BusyTime out;
  std::ifstream in("/proc/stat");  // TAG USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL
  std::string tag;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0, steal = 0;
  if (!(in >> tag >> user >> nice >> system >> idle >> wait >> irq >> softirq >> steal)) return out;
  out.all = (user + nice + system + irq + softirq + steal) / static_cast<double>(told(_SC_CLK_TCK));
  timespec own{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  out.own = static_cast<double>(own.tv_sec) + 1e-9 * static_cast<double>(own.tv_nsec);
  return out;
}

double share_of_others(const BusyTime& before, double seconds) {
  const BusyTime now = busy_time();
  const double others = (now.all - before.all) - (now.own - before.own);
  const double there = seconds * static_cast<double>(told(_SC_NPROCESSORS_ONLN));
  return there > 0 ? std::clamp(others / there, 0.0, 1.0) : 0;
}

std::int64_t usable_memory() {
  std::int64_t bytes = told(_SC_PHYS_PAGES) * told(_SC_PAGESIZE);
  const fs::path root = "/sys/fs/cgroup";
  std::ifstream in("/proc/self/cgroup");  // NUMBER:CONTROLLERS:PATH
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty())
      bytes = std::min(bytes, least_limit(group, root, "memory.max"));
    else if (controllers == "memory")
      bytes = std::min(bytes, least_limit(group, root / "memory", "memory.limit_in_bytes"));
  }
  return bytes;
}

}  // namespace hone
