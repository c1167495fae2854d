// What a session needs and has of memory, part by part. Plain data; the session measures it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/executable.h"

namespace hone {

// Of one device of the executable.
struct DeviceUse {
  std::string name;
  std::size_t arena = 0, arena_lower_bound = 0, scratch = 0, staging = 0;
};

// Bytes in use during a run: what sessions of the executable share, and what this one adds. Memory
// that the caller binds is the caller's, and is not in it.
struct MemoryReport {
  SharedMemory shared;
  std::size_t arena = 0, arena_lower_bound = 0;
  std::size_t scratch = 0;  // of kernels and libraries, all threads
  // Copies of inputs and outputs whose memory is not aligned, or not read by the device.
  std::size_t staging = 0;
  std::size_t steps = 0;  // bound to the sizes that are kept ready
  // What libraries took for themselves when those steps were bound, as measured then: other
  // threads' allocations count, and what a library keeps between sessions counts in the first.
  std::size_t library = 0;
  std::vector<DeviceUse> devices;  // what arena, scratch and staging are the sums of

  std::size_t session() const { return arena + scratch + staging + steps + library; }
  std::size_t peak() const { return std::max(shared.peak(), shared.total() + session()); }
};

// "weights 12 + arena 4096 + ...": the parts that are not 0, in bytes.
std::string memory_text(const MemoryReport&);

// 80 % of what this process can have.
std::int64_t default_memory_limit();

}  // namespace hone
