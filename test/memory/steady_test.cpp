// Steady runs allocate nothing: all heap allocation functions are counted.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "plan/plan_file.h"
#include "runtime/session.h"
#include "test/memory/watch.h"
#include "test/runtime/state_plan.h"

#ifdef HONE_WATCHES_MEMORY
namespace hone {
namespace {

using Sizes = std::vector<std::int64_t>;

// Allocations in `runs` calls of f, on all threads.
template <class F>
long allocations_of(int runs, F&& f) {
  const test::Watch watch;
  for (int i = 0; i < runs; ++i) f();
  return watch.allocations();
}

TEST(Allocation, IsCounted) {
  EXPECT_EQ(allocations_of(1, [] { delete new volatile int(1); }), 1);
  EXPECT_GE(allocations_of(1, [] { Array::zeros(DType::f32, {1000}); }), 1);
}

class Steady : public testing::TestWithParam<int> {
 protected:
  static constexpr std::size_t count = 100'000;
  test::Memory<float> x_{count}, z_{count};
  Sizes dims_ = {count};
  TensorRef in_{DType::f32, dims_, x_.memory()}, out_{DType::f32, dims_, z_.memory()};

  void SetUp() override {
    for (std::size_t i = 0; i < count; ++i) x_[i] = static_cast<float>(i % 77);
  }
};

TEST_P(Steady, RunsAllocateNothingAndGiveEqualBits) {
  Session s(test::load(test::scale_and_add()), {.threads = GetParam()});
  s.run({&in_, 1}, {&out_, 1});
  const std::vector<float> first(z_.data(), z_.data() + count);
  bool is_equal = true;
  EXPECT_EQ(allocations_of(1000,
                           [&] {
                             std::memset(z_.data(), 0, count * sizeof(float));
                             s.run({&in_, 1}, {&out_, 1});
                             is_equal &= std::memcmp(first.data(), z_.data(), count * 4) == 0;
                           }),
            0);
  EXPECT_TRUE(is_equal);
}

TEST_P(Steady, ChangingAmongKnownSizesAndBuffersAllocatesNothing) {
  Session s(test::load(test::scale_and_add()), {.threads = GetParam()});
  test::Memory<float> other(count), crooked(count, 4);
  const Sizes sizes[] = {{10}, {5000}, {100'000}};
  const auto run = [&] {
    for (const Sizes& dims : sizes)
      for (float* z : {z_.data(), other.data(), crooked.data()}) {
        const auto n = static_cast<std::size_t>(dims[0]);
        const TensorRef in{DType::f32, dims, memory_of(x_.data(), n)},
            out{DType::f32, dims, memory_of(z, n)};
        s.run({&in, 1}, {&out, 1});
      }
  };
  run();
  EXPECT_EQ(allocations_of(100, run), 0);
}

TEST_P(Steady, StridesAndAlternatingTensorsAllocateNothing) {
  const auto executable = test::load(test::scale_and_add());
  Session s(executable, {.threads = GetParam()});
  const Sizes dims = {1000}, strides = {3};
  const TensorRef in{DType::f32, dims, x_.memory(), strides};
  std::vector<DeviceTensor> out;
  for (int i = 0; i < 4; ++i) out.emplace_back(executable->device(), DType::f32, dims);
  const auto run = [&] {
    for (const DeviceTensor& z : out) {
      s.bind_input(0, in);
      s.bind_output(0, z);
      s.run();
    }
  };
  run();
  EXPECT_EQ(allocations_of(100, run), 0);
}

TEST_P(Steady, RunsOnACallersStreamAllocateNothing) {
  const auto executable = test::load(test::counters());
  State state(executable);
  Session update(executable, {.threads = GetParam(),
                              .entry = "update",
                              .states = {state},
                              .stream = executable->device()->open_stream()});
  std::int64_t zero = 0;
  update.bind_input(0, {DType::i64, {}, memory_of(&zero, 1)});
  for (int i = 0; i < 3; ++i) update.run();
  EXPECT_EQ(allocations_of(100, [&] { update.run(); }), 0);
  update.wait();
  EXPECT_EQ(state.version("model"), 103u);
}

TEST_P(Steady, UpdatesOfStatesAllocateNothing) {
  const auto executable = test::load(test::counters());
  State state(executable);
  Session update(executable, {.threads = GetParam(), .entry = "update", .states = {state}});
  std::int64_t zero = 0;
  update.bind_input(0, {DType::i64, {}, memory_of(&zero, 1)});
  update.run();
  EXPECT_EQ(allocations_of(100, [&] { update.run(); }), 0);
  EXPECT_EQ(state.version("model"), 101u);
}

TEST_P(Steady, BackgroundRunsAllocateNothing) {
  Session s(test::load(test::scale_and_add()), {.threads = GetParam()});
  s.bind_input(0, in_);
  s.bind_output(0, out_);
  s.submit();
  s.wait();
  EXPECT_EQ(allocations_of(100,
                           [&] {
                             s.submit();
                             s.wait();
                           }),
            0);
}

// 2 (2 w + 1) + 1 over a weight of f32[size], through the arena.
Plan large_plan(std::int64_t size) {
  Plan p = test::plan_of({}, {{"y", f32({size})}});
  test::add_kernels(p, {{"scale", test::scale_kernel}});
  p.weights = {{"w", Array::zeros(DType::f32, {size})}};
  Variant& v = p.main().variants[0];
  v.buffers = {{PlanBuffer::Kind::weight, 0, 0, size * 4},
               {PlanBuffer::Kind::arena, 0, 0, size * 4},
               {PlanBuffer::Kind::result, 0, 0, size * 4}};
  v.devices[0].arena_bytes = v.devices[0].arena_lower_bound = size * 4;
  const auto view = [&](std::uint32_t b) { return test::dense(b, DType::f32, {size}); };
  v.steps = {test::launch_of(0, {view(0), view(1)}, {false, true}, {size}, size / 1024),
             test::launch_of(0, {view(1), view(2)}, {false, true}, {size}, size / 1024)};
  v.steps[0].scratch_bytes = 65536;
  return p;
}

TEST_P(Steady, PeakMemoryIsWhatTheReportSays) {
  constexpr std::int64_t size = 1 << 21;
  const auto path = std::filesystem::path(testing::TempDir()) / "large.hone";
  write_plan(path, large_plan(size));
  test::Memory<float> y(size);
  const Sizes dims = {size};
  const test::Watch watch;
  long report = 0;
  {
    Session s(Executable::open(path, open_cpu_device()), {.threads = GetParam()});
    s.bind_output(0, {DType::f32, dims, y.memory()});
    report = static_cast<long>(s.memory().peak());
    for (int i = 0; i < 3; ++i) s.run();
  }
  EXPECT_EQ(y[5], 3);
  EXPECT_NEAR(static_cast<double>(watch.peak()), static_cast<double>(report),
              0.02 * static_cast<double>(report));
  EXPECT_LT(watch.held(), 4096);  // everything was freed
}

INSTANTIATE_TEST_SUITE_P(Threads, Steady, testing::Values(1, 2, 4));

}  // namespace
}  // namespace hone
#endif
