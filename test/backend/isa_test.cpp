#include "backend/cpu/isa/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"

namespace hone::cpu {

TEST(Isa, LevelsHaveNames) {
  for (Isa isa : {Isa::v1, Isa::v2, Isa::v3, Isa::v4}) EXPECT_EQ(isa_from_name(isa_name(isa)), isa);
  EXPECT_EQ(isa_from_name("x86-64-v5"), std::nullopt);
  EXPECT_GE(machine_isa(), Isa::v3);  // this program is compiled for it
}

TEST(Isa, TheFlagLowersTheLevel) {
  ::setenv("HONE_CPU_ISA", "x86-64-v2", 1);
  EXPECT_EQ(allowed_isa(), Isa::v2);
  ::setenv("HONE_CPU_ISA", "avx9", 1);
  EXPECT_THROW(allowed_isa(), UserError);
  ::setenv("HONE_CPU_ISA", "native", 1);
  EXPECT_EQ(allowed_isa(), machine_isa());
  ::unsetenv("HONE_CPU_ISA");
  EXPECT_EQ(allowed_isa(), machine_isa());
}

}  // namespace hone::cpu
