#include "runtime/device.h"

#include <utility>

namespace hone {

std::int64_t CallRequest::setting(std::string_view key, std::int64_t fallback) const {
  for (const auto& [name, value] : settings)
    if (name == key) return value;
  return fallback;
}

OwnedMemory::OwnedMemory(std::shared_ptr<Allocator> allocator, std::size_t bytes)
    : allocator_(std::move(allocator)), size_(bytes) {
  if (bytes > 0) data_ = allocator_->alloc(bytes);
}

OwnedMemory::~OwnedMemory() {
  if (data_) allocator_->free(data_, size_);
}

OwnedMemory::OwnedMemory(OwnedMemory&& other) noexcept
    : allocator_(std::move(other.allocator_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

OwnedMemory& OwnedMemory::operator=(OwnedMemory&& other) noexcept {
  std::swap(allocator_, other.allocator_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace hone
