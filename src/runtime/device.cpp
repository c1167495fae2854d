#include "runtime/device.h"

#include <utility>

#include "base/error.h"

namespace hone {

std::int64_t CallRequest::setting(std::string_view key, std::int64_t fallback) const {
  for (const auto& [name, value] : settings)
    if (name == key) return value;
  return fallback;
}

std::unique_ptr<BoundCall> Device::bind(const CallRequest& r) {
  throw UserError(name(), ": function '", r.name, "' is unknown; compile the plan again");
}

std::shared_ptr<Stream> Device::adopt_stream(void*) {
  throw UserError("device '", name(),
                  "' has no streams of a caller's to run on; leave the stream out");
}

std::unique_ptr<Event> Device::adopt_event(void*) {
  throw UserError("device '", name(),
                  "' has no events of a caller's; wait until the run is finished instead");
}

OwnedMemory::OwnedMemory(std::shared_ptr<Allocator> allocator, std::size_t bytes)
    : allocator_(std::move(allocator)), size_(bytes) {
  if (bytes > 0) at_ = allocator_->alloc(bytes);
}

OwnedMemory::~OwnedMemory() {
  if (at_) allocator_->free(at_, size_);
}

OwnedMemory::OwnedMemory(OwnedMemory&& other) noexcept
    : allocator_(std::move(other.allocator_)),
      at_(std::exchange(other.at_, {})),
      size_(std::exchange(other.size_, 0)) {}

OwnedMemory& OwnedMemory::operator=(OwnedMemory&& other) noexcept {
  std::swap(allocator_, other.allocator_);
  std::swap(at_, other.at_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace hone
