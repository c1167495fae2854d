// Steady runs on a GPU: what the driver allocates inside of its functions does not count, but that
// it is asked for memory of the device does.
#if __has_include(<cuda.h>)
#include <gtest/gtest.h>

#include <utility>

#include "backend/backend.h"
#include "backend/cuda/driver/driver.h"
#include "backend/devices/devices.h"
#include "compile/compile.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "runtime/session.h"
#include "test/memory/watch.h"

#ifdef HONE_WATCHES_MEMORY
namespace hone {
namespace {

using cuda::Driver;

// A function of the driver that a steady run calls.
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
  Function f;
  const Value x = f.add_param(f32({Dim::symbol("n", 1, 4096), 256}), "x"),
              w = f.add_param(f32({256, 64}), "w");
  f.add_result(ops::softmax(ops::matmul(x, w), {{"axis", 1}}), "y");
  f.add_result(reduce_axes(ops::reduce_sum, x, {1}), "sum");
  CompileOptions options{.backend = &backend("cuda")};
  options.verification = Verification::none;
  options.cache = false;
  const auto plan = std::make_shared<const Plan>(compile({"test", {{{}, f}}, {}}, options));
  Session session(Executable::load(plan, open_devices(*plan)), {});
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
  for (int i = 0; i < 6; ++i) run();
  const test::Watch watch(test::Watch::Of::this_thread);
  const long launches = Unwatched<&Driver::cuLaunchKernelEx>::calls +
                        Unwatched<&Driver::cuGraphLaunch>::calls,
             device_allocations = Alloc::calls;
  for (int i = 0; i < 50; ++i) run();
  EXPECT_EQ(watch.allocations(), 0);
  EXPECT_EQ(Alloc::calls, device_allocations);
  EXPECT_GT(Unwatched<&Driver::cuLaunchKernelEx>::calls + Unwatched<&Driver::cuGraphLaunch>::calls,
            launches);
}

}  // namespace
}  // namespace hone
#endif
#endif
