#include "verify/kernel/trial_memory.h"

#include <gtest/gtest.h>

#include <cstring>

#include "backend/cpu/device/cpu_device.h"

namespace hone::test {

namespace {

TEST(TrialMemory, GivesOutAgainWhatWasFreed) {
  const std::shared_ptr<Device> device = open_cpu_device();
  TrialMemory memory(device);
  const DeviceMemory first = memory.alloc(1 << 20);
  const DeviceMemory second = memory.alloc(1 << 20);
  EXPECT_FALSE(first == second);
  memory.free(first, 1 << 20);
  EXPECT_TRUE(memory.alloc(1 << 20) == first);
  memory.free(first, 1 << 20);
  memory.free(second, 1 << 20);
  // A slightly smaller request reuses a freed block; a much smaller one would waste it; a larger
  // one does not fit.
  const DeviceMemory less = memory.alloc((1 << 20) - 4096);
  EXPECT_TRUE(less == first || less == second);
  const DeviceMemory little = memory.alloc(1 << 10);
  EXPECT_TRUE(!(little == first) && !(little == second));
  const DeviceMemory more = memory.alloc(2 << 20);
  EXPECT_TRUE(!(more == first) && !(more == second));
  std::memset(device->host_address(more), 1, 2 << 20);
  memory.free(less, (1 << 20) - 4096);
  memory.free(little, 1 << 10);
  memory.free(more, 2 << 20);
}

}  // namespace

}  // namespace hone::test
