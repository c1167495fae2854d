#include "compile/trial_memory.h"

#include <gtest/gtest.h>

#include <cstring>

#include "backend/cpu/device/cpu_device.h"

namespace hone::test {

namespace {

TEST(TrialMemory, GivesOutAgainWhatWasFreed) {
  TrialMemory memory(open_cpu_device());
  std::byte* first = memory.alloc(1 << 20);
  std::byte* second = memory.alloc(1 << 20);
  EXPECT_NE(first, second);
  memory.free(first, 1 << 20);
  EXPECT_EQ(memory.alloc(1 << 20), first);
  memory.free(first, 1 << 20);
  memory.free(second, 1 << 20);
  // A little less fits, much less would waste it, more does not fit.
  std::byte* less = memory.alloc((1 << 20) - 4096);
  EXPECT_TRUE(less == first || less == second);
  std::byte* little = memory.alloc(1 << 10);
  EXPECT_TRUE(little != first && little != second);
  std::byte* more = memory.alloc(2 << 20);
  EXPECT_TRUE(more != first && more != second);
  std::memset(more, 1, 2 << 20);
  memory.free(less, (1 << 20) - 4096);
  memory.free(little, 1 << 10);
  memory.free(more, 2 << 20);
}

}  // namespace

}  // namespace hone::test
