#include "base/executable_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace hone {

ExecutableMemory::ExecutableMemory(std::span<const std::byte> code,
                                   std::span<const Patch> patches) {
  if (code.empty()) return;
  void* memory =
      ::mmap(nullptr, code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw UserError("machine code: no memory for ", code.size(), " bytes: ", std::strerror(errno));
  ExecutableMemory owner;
  owner.data_ = static_cast<std::byte*>(memory);
  owner.size_ = code.size();
  std::memcpy(memory, code.data(), code.size());
  for (const Patch& p : patches) {
    HONE_ASSERT(code.size() >= 8 && p.offset <= code.size() - 8, "patch at ", p.offset);
    std::memcpy(owner.data_ + p.offset, &p.value, sizeof p.value);
  }
  if (::mprotect(memory, code.size(), PROT_READ | PROT_EXEC) != 0)
    throw UserError("machine code: the system refuses executable memory: ", std::strerror(errno),
                    "; check whether a security policy forbids it to this process");
  *this = std::move(owner);
}

ExecutableMemory::~ExecutableMemory() {
  if (data_) ::munmap(data_, size_);
}

ExecutableMemory::ExecutableMemory(ExecutableMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

ExecutableMemory& ExecutableMemory::operator=(ExecutableMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace hone
