// A read-only, executable copy of machine code. Never writable and executable at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hone {

class ExecutableMemory {
 public:
  struct Patch {
    std::uint64_t offset;  // of eight bytes inside the code
    std::uint64_t value;
  };

  ExecutableMemory() = default;
  // Copies the code to a page boundary and writes the patches into the copy.
  ExecutableMemory(std::span<const std::byte> code, std::span<const Patch> patches);
  ~ExecutableMemory();
  ExecutableMemory(ExecutableMemory&&) noexcept;
  ExecutableMemory& operator=(ExecutableMemory&&) noexcept;

  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace hone
