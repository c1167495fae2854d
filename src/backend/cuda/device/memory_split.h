// How a launch divides the memory of a multiprocessor between the shared memory of its blocks and
// the first cache. Without a wish the driver gives blocks so much that as many as possible of them
// run at once, although short launches have one block for each multiprocessor.
#pragma once

#include <cstdint>

namespace hone::cuda {

struct Multiprocessors {
  std::int64_t count = 1;
  std::int64_t shared_bytes = 0;  // of each one, at most
  std::int64_t kept_bytes = 0;    // what the driver takes of them for each block
};

// Of a kernel on a device.
struct BlockMemory {
  std::int64_t bytes = 0;  // of a block, with what the driver takes
  std::int64_t most = 1;   // blocks that one multiprocessor runs at once
  // It copies from global to shared memory through the first cache.
  bool copies_through_cache = false;
};

// Per cent of Multiprocessors::shared_bytes that a launch of so many blocks asks for.
int shared_percent(const BlockMemory&, std::int64_t blocks, const Multiprocessors&);

}  // namespace hone::cuda
