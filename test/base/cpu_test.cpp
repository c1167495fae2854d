#include "base/cpu.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/executable_memory.h"

namespace hone {

TEST(Cpu, LevelsHaveNames) {
  for (Isa isa : {Isa::v1, Isa::v2, Isa::v3, Isa::v4}) EXPECT_EQ(isa_from_name(isa_name(isa)), isa);
  EXPECT_EQ(isa_from_name("x86-64-v5"), std::nullopt);
  EXPECT_GE(machine_isa(), Isa::v3);  // this program is compiled for it
}

TEST(Cpu, TheFlagLowersTheLevel) {
  ::setenv("HONE_CPU_ISA", "x86-64-v2", 1);
  EXPECT_EQ(allowed_isa(), Isa::v2);
  ::setenv("HONE_CPU_ISA", "avx9", 1);
  EXPECT_THROW(allowed_isa(), UserError);
  ::setenv("HONE_CPU_ISA", "native", 1);
  EXPECT_EQ(allowed_isa(), machine_isa());
  ::unsetenv("HONE_CPU_ISA");
  EXPECT_EQ(allowed_isa(), machine_isa());
}

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
