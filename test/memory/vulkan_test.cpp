// Steady runs on a Vulkan device: allocations inside of driver functions do not count. Needs a
// Vulkan device, which may be software: HONE_VULKAN_DEVICE names it.
#ifdef HONE_VULKAN
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "backend/vulkan/device/stream.h"
#include "runtime/session.h"
#include "test/memory/steady_runs.h"
#include "test/memory/watch.h"

#ifdef HONE_WATCHES_MEMORY
namespace hone {
namespace {

// The driver functions that a steady run calls.
PFN_vkQueueSubmit submit = nullptr;
PFN_vkWaitSemaphores wait = nullptr;

VkResult unwatched_submit(VkQueue queue, std::uint32_t count, const VkSubmitInfo* info,
                          VkFence fence) {
  const test::Watch::Pause pause;
  return submit(queue, count, info, fence);
}
VkResult unwatched_wait(VkDevice device, const VkSemaphoreWaitInfo* info, std::uint64_t ns) {
  const test::Watch::Pause pause;
  return wait(device, info, ns);
}

TEST(VulkanMemory, SteadyRunsAllocateNothing) {
  if (!std::getenv("HONE_VULKAN_DEVICE")) GTEST_SKIP() << "HONE_VULKAN_DEVICE names no device";
  const std::shared_ptr<const Plan> plan = test::steady_plan("vulkan");
  const auto shared = std::make_shared<vulkan::Shared>();
  submit = std::exchange(shared->machine->api.vkQueueSubmit, unwatched_submit);
  wait = std::exchange(shared->machine->api.vkWaitSemaphores, unwatched_wait);
  Session session(Executable::load(plan, vulkan::device_of(shared)), {});
  test::SteadyRuns runs(session);
  {
    const test::Watch watch(test::Watch::Of::this_thread);
    delete new volatile int(1);
    EXPECT_EQ(watch.allocations(), 1);
  }
  for (int i = 0; i < 3; ++i) runs.run();
  const test::Watch watch(test::Watch::Of::this_thread);
  for (int i = 0; i < 50; ++i) runs.run();
  EXPECT_EQ(watch.allocations(), 0);
}

}  // namespace
}  // namespace hone
#endif
#endif
