#include "runtime/host_memory.h"

#include <new>

#include "base/error.h"

namespace hone {

DeviceMemory HostMemory::alloc(std::size_t bytes) {
  void* data = ::operator new(bytes, std::align_val_t{alignment}, std::nothrow);
  if (!data)
    throw OutOfMemory("out of memory: cannot allocate ", bytes, " bytes; use smaller sizes");
  return {reinterpret_cast<std::uintptr_t>(data), 0};
}

void HostMemory::free(DeviceMemory m, std::size_t) noexcept {
  ::operator delete(address(m), std::align_val_t{alignment});
}

std::byte* HostMemory::address(DeviceMemory m) {
  // Integers are added: a part of an empty array may have an offset and no memory.
  return reinterpret_cast<std::byte*>(m.handle + static_cast<std::uintptr_t>(m.offset));
}

}  // namespace hone
