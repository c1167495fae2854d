// Steady runs on a Vulkan device: what the driver allocates inside of its functions does not count.
// Needs a Vulkan device, which may be software: HONE_VULKAN_DEVICE names it.
#ifdef HONE_VULKAN
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "backend/backend.h"
#include "backend/vulkan/device/stream.h"
#include "compile/compile.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "runtime/session.h"
#include "test/memory/watch.h"

#ifdef HONE_WATCHES_MEMORY
namespace hone {
namespace {

// The driver's functions that a steady run calls.
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
  Function f;
  const Value x = f.add_param(f32({Dim::symbol("n", 1, 4096), 256}), "x"),
              w = f.add_param(f32({256, 64}), "w");
  f.add_result(ops::softmax(ops::matmul(x, w), {{"axis", 1}}), "y");
  f.add_result(reduce_axes(ops::reduce_sum, x, {1}), "sum");
  CompileOptions options{.backend = &backend("vulkan")};
  options.verification = Verification::none;
  options.cache = false;
  const auto plan = std::make_shared<const Plan>(compile({"test", {{{}, f}}, {}}, options));
  const auto shared = std::make_shared<vulkan::Shared>();
  submit = std::exchange(shared->machine->api.vkQueueSubmit, unwatched_submit);
  wait = std::exchange(shared->machine->api.vkWaitSemaphores, unwatched_wait);
  Session session(Executable::load(plan, vulkan::device_of(shared)), {});
  const std::vector<std::int64_t> sizes[] = {{32, 256}, {100, 256}}, dims_of_w = {256, 64};
  std::vector<float> weights(256 * 64, 0.5f), in(100 * 256, 1.0f), y(100 * 64), sums(100);
  const auto run = [&] {
    for (const std::vector<std::int64_t>& dims : sizes) {
      const auto n = static_cast<std::size_t>(dims[0]);
      const std::int64_t dims_of_y[] = {dims[0], 64}, dims_of_sum[] = {dims[0]};
      const TensorRef inputs[] = {{DType::f32, dims, memory_of(in.data(), n * 256)},
                                  {DType::f32, dims_of_w,
                                   memory_of(weights.data(), weights.size())}},
                      outputs[] = {{DType::f32, dims_of_y, memory_of(y.data(), n * 64)},
                                   {DType::f32, dims_of_sum, memory_of(sums.data(), n)}};
      session.run(inputs, outputs);
      ASSERT_EQ(sums[n - 1], 256);
      ASSERT_NEAR(y[n * 64 - 1], 1.0 / 64, 1e-6);
    }
  };
  {
    const test::Watch watch(test::Watch::Of::this_thread);
    delete new volatile int(1);
    EXPECT_EQ(watch.allocations(), 1);
  }
  for (int i = 0; i < 3; ++i) run();
  const test::Watch watch(test::Watch::Of::this_thread);
  for (int i = 0; i < 50; ++i) run();
  EXPECT_EQ(watch.allocations(), 0);
}

}  // namespace
}  // namespace hone
#endif
#endif
