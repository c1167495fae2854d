// Steady runs on a GPU: allocations inside of driver functions do not count, but requests for
// device memory do.
#if __has_include(<cuda.h>)
#include <gtest/gtest.h>

#include <utility>

#include "backend/cuda/driver/driver.h"
#include "backend/devices/devices.h"
#include "runtime/session.h"
#include "test/memory/steady_runs.h"
#include "test/memory/watch.h"

#ifdef HONE_WATCHES_MEMORY
namespace hone {
namespace {

using cuda::Driver;

// Wraps a driver function that a steady run calls: counts its calls, not its allocations.
template <auto function>
struct Unwatched;
template <class R, class... Arguments, R (*Driver::*function)(Arguments...)>
struct Unwatched<function> {
  static inline R (*real)(Arguments...) = nullptr;
  static inline long calls = 0;
  static R call(Arguments... arguments) {
    const test::Watch::Pause pause;
    ++calls;
    return real(arguments...);
  }
  static void put(Driver& driver) { real = std::exchange(driver.*function, &call); }
};

TEST(CudaMemory, SteadyRunsAllocateNothing) {
  auto& driver = const_cast<Driver&>(cuda::driver());
  if (!driver.failure.empty() || driver.devices == 0) GTEST_SKIP() << "no NVIDIA GPU";
  using Alloc = Unwatched<&Driver::cuMemAllocAsync>;
  Alloc::put(driver);
  Unwatched<&Driver::cuLaunchKernelEx>::put(driver);
  Unwatched<&Driver::cuGraphLaunch>::put(driver);
  Unwatched<&Driver::cuMemcpyHtoDAsync>::put(driver);
  Unwatched<&Driver::cuMemcpyDtoHAsync>::put(driver);
  Unwatched<&Driver::cuStreamSynchronize>::put(driver);
  Unwatched<&Driver::cuCtxPushCurrent>::put(driver);
  Unwatched<&Driver::cuCtxPopCurrent>::put(driver);
  Unwatched<&Driver::cuPointerGetAttributes>::put(driver);
  const std::shared_ptr<const Plan> plan = test::steady_plan("cuda");
  Session session(Executable::load(plan, open_devices(*plan)), {});
  test::SteadyRuns runs(session);
  for (int i = 0; i < 6; ++i) runs.run();
  const test::Watch watch(test::Watch::Of::this_thread);
  const long launches = Unwatched<&Driver::cuLaunchKernelEx>::calls +
                        Unwatched<&Driver::cuGraphLaunch>::calls,
             device_allocations = Alloc::calls;
  for (int i = 0; i < 50; ++i) runs.run();
  EXPECT_EQ(watch.allocations(), 0);
  EXPECT_EQ(Alloc::calls, device_allocations);
  EXPECT_GT(Unwatched<&Driver::cuLaunchKernelEx>::calls + Unwatched<&Driver::cuGraphLaunch>::calls,
            launches);
}

}  // namespace
}  // namespace hone
#endif
#endif
