// How a launch divides the memory of a multiprocessor between the shared memory of its blocks and
// the L1 cache. By default the driver reserves enough for as many concurrent blocks as possible,
// although short launches have only one block per multiprocessor.
#pragma once

#include <cstdint>

#include "backend/cuda/driver/code.h"

namespace hone::cuda {

struct Multiprocessors {
  std::int64_t count = 1;
  std::int64_t shared_bytes = 0;  // maximum per multiprocessor
  std::int64_t kept_bytes = 0;    // reserved by the driver for each block
};

// Memory needs of a kernel on a device.
struct BlockMemory {
  std::int64_t bytes = 0;  // per block, including the driver's part
  std::int64_t most = 1;   // concurrent blocks per multiprocessor
  CacheCopies copies = CacheCopies::none;
};

// Percentage of Multiprocessors::shared_bytes that a launch of `blocks` blocks requests.
int shared_percent(const BlockMemory&, std::int64_t blocks, const Multiprocessors&);

}  // namespace hone::cuda
