// The memory that a session needs and uses, by part. Plain data; the session measures it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/executable.h"

namespace hone {

// Use of one device of the executable.
struct DeviceUse {
  std::string name;
  std::size_t arena = 0, arena_lower_bound = 0, scratch = 0, staging = 0;
};

// Bytes in use during a run: what all sessions of the executable share, and what this one adds.
// Does not count memory that the caller binds.
struct MemoryReport {
  SharedMemory shared;
  std::size_t states = 0;  // of the States that the session uses; other sessions may share them
  std::size_t arena = 0, arena_lower_bound = 0;
  std::size_t scratch = 0;  // of kernels and libraries, for all threads
  // Copies of inputs and outputs whose memory is not aligned or cannot be read by the device.
  std::size_t staging = 0;
  std::size_t steps = 0;  // steps bound to the sets of sizes that are kept ready
  // Measured allocations of libraries while those steps were bound. Includes allocations of other
  // threads; memory that a library keeps between sessions is counted in the first session.
  std::size_t library = 0;
  std::vector<DeviceUse> devices;  // arena, scratch and staging are sums over these

  std::size_t session() const { return states + arena + scratch + staging + steps + library; }
  std::size_t peak() const { return std::max(shared.peak(), shared.total() + session()); }
};

// "weights 12 + arena 4096 + ...": the parts that are not 0, in bytes.
std::string memory_text(const MemoryReport&);

// 80 % of the memory available to this process.
std::int64_t default_memory_limit();

}  // namespace hone
