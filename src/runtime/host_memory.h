// Host memory as an allocator, for callers and tests. Its handles are addresses.
#pragma once

#include <cstddef>

#include "runtime/device.h"

namespace hone {

class HostMemory final : public Allocator {
 public:
  DeviceMemory alloc(std::size_t bytes) override;
  void free(DeviceMemory, std::size_t bytes) noexcept override;
  static std::byte* address(DeviceMemory);

 private:
  static constexpr std::size_t alignment = 64;
};

}  // namespace hone
