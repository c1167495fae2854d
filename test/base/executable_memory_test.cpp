#include "base/executable_memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"

namespace hone {

TEST(ExecutableMemory, RunsAPatchedCopyThatMayMove) {
  // mov rax, imm64; ret
  std::vector<std::byte> code(16, std::byte{0xcc});
  code[0] = std::byte{0x48};
  code[1] = std::byte{0xb8};
  code[10] = std::byte{0xc3};
  ExecutableMemory::Patch patch = {2, 0x123456789abcdefull};
  ExecutableMemory memory(code, std::span(&patch, 1));
  ExecutableMemory moved = std::move(memory);
  EXPECT_EQ(memory.data(), nullptr);
  auto f = reinterpret_cast<std::uint64_t (*)()>(reinterpret_cast<std::uintptr_t>(moved.data()));
  EXPECT_EQ(f(), patch.value);
  ExecutableMemory::Patch outside = {9, 0};
  EXPECT_THROW(ExecutableMemory(code, std::span(&outside, 1)), InternalError);
}

}  // namespace hone
