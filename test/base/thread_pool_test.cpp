#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <set>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "base/error.h"

namespace hone {
namespace {

std::unique_ptr<ThreadPool> pool_of(int threads) { return make_thread_pool({.threads = threads}); }

// The number of times each chunk is computed.
std::vector<int> counts(ThreadPool& pool, std::int64_t chunks) {
  std::vector<int> out(static_cast<std::size_t>(chunks));
  parallel_for(pool, chunks, [&](std::int64_t i) { ++out[static_cast<std::size_t>(i)]; });
  return out;
}

TEST(ThreadPool, ComputesEachChunkOnce) {
  for (int threads : {1, 2, 3, 8}) {
    auto pool = pool_of(threads);
    EXPECT_EQ(pool->threads(), threads);
    for (std::int64_t chunks : {0, 1, 2, 7, 64, 1000, 100000})
      EXPECT_EQ(counts(*pool, chunks), std::vector<int>(static_cast<std::size_t>(chunks), 1));
  }
}

TEST(ThreadPool, RunsManyShortJobs) {
  auto pool = pool_of(4);
  std::int64_t sum = 0;
  for (int job = 0; job < 20000; ++job) {
    std::atomic<std::int64_t> part{0};
    parallel_for(*pool, 1 + job % 9, [&](std::int64_t i) { part += i + 1; });
    sum += part;
  }
  std::int64_t expected = 0;
  for (int job = 0; job < 20000; ++job) expected += (1 + job % 9) * (2 + job % 9) / 2;
  EXPECT_EQ(sum, expected);
}

TEST(ThreadPool, WakesSleepingThreads) {
  auto pool = make_thread_pool({.threads = 2, .spin_us = 0});
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(counts(*pool, 64), std::vector<int>(64, 1));
  }
}

TEST(ThreadPool, UsesSeveralThreadsWithDifferentNumbers) {
  auto pool = pool_of(2);
  // Each of the two bodies waits for the other, so one thread alone cannot finish.
  struct Job {
    std::atomic<int> inside{0};
    std::atomic<int> numbers{0};
  } job;
  pool->run(
      2,
      [](void* context, std::int64_t, std::int64_t, int thread) {
        Job& j = *static_cast<Job*>(context);
        ++j.inside;
        while (j.inside < 2) std::this_thread::yield();
        j.numbers += thread + 1;
      },
      &job);
  EXPECT_EQ(job.numbers, 1 + 2);
}

// A thread that flushes denormals or rounds differently would give other bits than the caller.
TEST(ThreadPool, WorkersCalculateAsTheirCallerDoes) {
  auto pool = pool_of(3);
  struct Job {
    std::atomic<int> inside{0};
    std::array<unsigned, 3> control{};  // of each thread, without the exception flags
    std::array<float, 3> half_of_least{}, third{};
  } job;
  pool->run(
      3,
      [](void* context, std::int64_t, std::int64_t, int thread) {
        Job& j = *static_cast<Job*>(context);
        ++j.inside;
        while (j.inside < 3) std::this_thread::yield();
        const auto at = static_cast<std::size_t>(thread);
        volatile float least = std::numeric_limits<float>::min(), one = 1;
        constexpr unsigned flags = 0x3f;
        j.control[at] = __builtin_ia32_stmxcsr() & ~flags;
        j.half_of_least[at] = least / 2;
        j.third[at] = one / 3;
      },
      &job);
  for (const std::size_t thread : {0, 1, 2}) {
    EXPECT_EQ(job.control[thread], 0x1f80u) << thread;
    EXPECT_EQ(job.half_of_least[thread], std::numeric_limits<float>::min() / 2) << thread;
    EXPECT_EQ(job.third[thread], 1.0f / 3) << thread;
  }
}

TEST(ThreadPool, NestedJobsRunInTheirCaller) {
  auto pool = pool_of(3);
  std::atomic<int> inner{0};
  parallel_for(*pool, 10, [&](std::int64_t) {
    const auto self = std::this_thread::get_id();
    parallel_for(*pool, 10, [&](std::int64_t) { inner += std::this_thread::get_id() == self; });
  });
  EXPECT_EQ(inner, 100);
}

TEST(ThreadPool, SeveralCallersMayShareIt) {
  auto pool = pool_of(2);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) wrong += counts(*pool, 33) != std::vector<int>(33, 1);
    });
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, RethrowsTheFirstException) {
  auto pool = pool_of(2);
  EXPECT_THROW(parallel_for(*pool, 100, [](std::int64_t) { throw std::runtime_error("x"); }),
               std::runtime_error);
  EXPECT_EQ(counts(*pool, 10), std::vector<int>(10, 1));
}

TEST(ThreadPool, ForkedChildIsTold) {
  auto pool = pool_of(2);
  counts(*pool, 100);
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 1;
    try {
      counts(*pool, 100);
    } catch (const UserError& e) {
      code = std::string_view(e.what()).find("forked") != std::string_view::npos ? 0 : 2;
    }
    pool.reset();  // must not wait for threads that do not exist
    ::_exit(code);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(counts(*pool, 100), std::vector<int>(100, 1));
}

TEST(ThreadPool, CountFollowsFlagAndAffinity) {
  ::setenv("HONE_THREADS", "3", 1);
  EXPECT_EQ(default_thread_count(), 3);
  ::setenv("HONE_THREADS", "many", 1);
  EXPECT_THROW(default_thread_count(), UserError);
  ::unsetenv("HONE_THREADS");
  std::thread([] {  // its own mask, so that other tests keep theirs
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(default_thread_count(), 1);
  })
      .join();
  EXPECT_THROW(make_thread_pool({.threads = -1}), UserError);
}

TEST(ThreadPool, PinsItsThreads) {
  const int cpu = ::sched_getcpu();
  auto pool = make_thread_pool({.threads = 2, .affinity = {cpu, 100000}});
  EXPECT_EQ(counts(*pool, 1000), std::vector<int>(1000, 1));
}

}  // namespace
}  // namespace hone
