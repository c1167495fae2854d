// Copies between dense memory of the host and a value in memory of a device that may have room for
// a longer one (type/capacity.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "runtime/device.h"
#include "type/capacity.h"

namespace hone {

// Runs of bytes at equal distances.
struct Rows {
  std::int64_t count = 1, bytes = 0, stride = 0;

  Rows(DType, std::span<const std::int64_t> dims, const std::optional<Capacity>&);
  // From the first byte to the end of the room behind the last.
  std::int64_t extent() const { return count * stride; }
};

void upload(Stream&, DeviceMemory to, std::span<const std::byte> from, const Rows&);
void download(Stream&, std::span<std::byte> to, DeviceMemory from, const Rows&);

}  // namespace hone
