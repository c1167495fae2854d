#include "runtime/rows.h"

namespace hone {

Rows::Rows(DType dtype, std::span<const std::int64_t> dims,
           const std::optional<Capacity>& capacity) {
  std::int64_t inner = byte_size(dtype);
  const std::size_t axis = capacity ? capacity->axis : 0;
  for (std::size_t i = axis + (capacity ? 1 : 0); i < dims.size(); ++i) inner *= dims[i];
  if (!capacity) {
    bytes = stride = inner;
    return;
  }
  for (std::size_t i = 0; i < axis; ++i) count *= dims[i];
  bytes = dims[axis] * inner;
  stride = capacity->size * inner;
}

void upload(Stream& stream, DeviceMemory to, std::span<const std::byte> from, const Rows& rows) {
  const auto size = static_cast<std::size_t>(rows.bytes);
  for (std::int64_t i = 0; i < rows.count && size > 0; ++i)
    stream.upload(to + i * rows.stride, from.subspan(static_cast<std::size_t>(i) * size, size));
}

void download(Stream& stream, std::span<std::byte> to, DeviceMemory from, const Rows& rows) {
  const auto size = static_cast<std::size_t>(rows.bytes);
  for (std::int64_t i = 0; i < rows.count && size > 0; ++i)
    stream.download(to.subspan(static_cast<std::size_t>(i) * size, size), from + i * rows.stride);
}

}  // namespace hone
