// CPU work other than kernels: library functions and strided copies on plain memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device.h"

namespace hone {

// DeviceLimits::alignment of the processor.
inline constexpr std::size_t buffer_alignment = 64;

// Its chunks may be computed concurrently and in any order; the partition depends only on the
// sizes.
class CpuCall : public BoundCall {
 public:
  virtual std::int64_t chunks() const { return 1; }
  virtual void run(void* const* operands, std::int64_t begin, std::int64_t end,
                   void* scratch) const = 0;
};

}  // namespace hone
