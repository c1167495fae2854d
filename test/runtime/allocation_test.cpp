// Steady runs allocate nothing: every way to get memory from the heap is counted.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>

#include "base/sanitizer.h"
#include "plan/plan_file.h"
#include "plans.h"
#include "runtime/session.h"

#if !defined(HONE_ADDRESS_SANITIZER) && !defined(HONE_THREAD_SANITIZER)
namespace {

std::atomic<long> allocations{0};
std::atomic<bool> is_counting{false};

}  // namespace

// glibc's own names, so that calls from C and from libraries are seen too.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

#pragma GCC visibility push(default)
extern "C" {
void* malloc(std::size_t n) {
  if (is_counting) ++allocations;
  return __libc_malloc(n);
}
void* calloc(std::size_t n, std::size_t size) {
  if (is_counting) ++allocations;
  return __libc_calloc(n, size);
}
void* realloc(void* p, std::size_t n) {
  if (is_counting) ++allocations;
  return __libc_realloc(p, n);
}
void* aligned_alloc(std::size_t align, std::size_t n) {
  if (is_counting) ++allocations;
  return __libc_memalign(align, n);
}
int posix_memalign(void** out, std::size_t align, std::size_t n) {
  if (is_counting) ++allocations;
  *out = __libc_memalign(align, n);
  return *out ? 0 : 12;
}
}
#pragma GCC visibility pop

namespace hone {
namespace {

using Sizes = std::vector<std::int64_t>;

// Allocations in `runs` calls of f, on all threads.
template <class F>
long allocations_of(int runs, F&& f) {
  allocations = 0;
  is_counting = true;
  for (int i = 0; i < runs; ++i) f();
  is_counting = false;
  return allocations;
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
  TensorRef in_{DType::f32, dims_, x_.data()}, out_{DType::f32, dims_, z_.data()};

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
        const TensorRef in{DType::f32, dims, x_.data()}, out{DType::f32, dims, z};
        s.run({&in, 1}, {&out, 1});
      }
  };
  run();
  EXPECT_EQ(allocations_of(100, run), 0);
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

INSTANTIATE_TEST_SUITE_P(Threads, Steady, testing::Values(1, 2, 4));

}  // namespace
}  // namespace hone
#endif
