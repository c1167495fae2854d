// Plans shared between threads: every session gives the same results as when it runs alone.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "plan/plan_file.h"
#include "test/compile/models.h"

namespace hone {
namespace {

using namespace test;

// The demo model: convolutions and contractions, a plan of many steps that takes microseconds.
Source digits() { return source_of(fs::path(HONE_SOURCE_DIR) / "examples/digits/digits.onnx"); }

Array digits_input(int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  Array x = Array::zeros(DType::f32, {1 + seed % 3, 1, 8, 8});
  for (float& v : x.writable<float>()) v = static_cast<float>(random() % 17);
  return x;
}

class Concurrency : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cache_ = std::make_unique<EmptyCache>();
    plan_ = std::make_shared<const Plan>(compile(digits(), {.strategy = "cpu"}));
    for (int i = 0; i < inputs; ++i) serial_.push_back(run(*session_of(plan_), i));
  }
  static void TearDownTestSuite() {
    plan_ = nullptr;
    serial_.clear();
    cache_ = nullptr;
  }

  static std::vector<Array> run(Session& session, int i) {
    const Array x = digits_input(i);
    return session.run(std::span(&x, 1));
  }
  // Runs f(thread) on that many threads at once.
  template <class F>
  static void at_once(int count, F f) {
    std::vector<std::thread> threads;
    for (int t = 0; t < count; ++t) threads.emplace_back(f, t);
    for (std::thread& t : threads) t.join();
  }

  static constexpr int inputs = 6;
  static std::unique_ptr<EmptyCache> cache_;
  static std::shared_ptr<const Plan> plan_;
  static std::vector<std::vector<Array>> serial_;
};
std::unique_ptr<EmptyCache> Concurrency::cache_;
std::shared_ptr<const Plan> Concurrency::plan_;
std::vector<std::vector<Array>> Concurrency::serial_;

TEST_F(Concurrency, ManySessionsOfOneExecutableGiveTheSerialResults) {
  const auto executable = Executable::load(plan_, open_device("cpu"));
  const std::shared_ptr<ThreadPool> pool = make_thread_pool({.threads = 2});
  for (int count : {8, 16}) {
    std::atomic<int> wrong{0};
    at_once(count, [&](int t) {
      Session session(executable,
                      t % 2 ? SessionOptions{.pool = pool} : SessionOptions{.threads = 1 + t % 3});
      for (int i = 0; i < 300; ++i)
        wrong += run(session, (t + i) % inputs) != serial_[(t + i) % inputs];
    });
    EXPECT_EQ(wrong, 0) << count << " threads";
  }
}

TEST_F(Concurrency, RealModelsGiveTheSerialResultsToo) {
  for (const std::string name : {"magika_v3_3", "silero_vad"}) {
    auto plan = std::make_shared<const Plan>(compile(model_source(name), {.strategy = "cpu"}));
    const std::vector<TestSet> sets = test_sets(name);
    std::vector<std::vector<Array>> serial;
    for (const TestSet& set : sets) serial.push_back(session_of(plan)->run(set.inputs));
    const auto executable = Executable::load(plan, open_device("cpu"));
    std::atomic<int> wrong{0};
    at_once(8, [&](int t) {
      Session session(executable, {.threads = 1 + t % 2});
      for (int i = 0; i < 6; ++i) {
        const std::size_t k = static_cast<std::size_t>(t + i) % sets.size();
        wrong += session.run(sets[k].inputs) != serial[k];
      }
    });
    EXPECT_EQ(wrong, 0) << name;
  }
}

TEST_F(Concurrency, PlansComeAndGoWhileOthersRun) {
  const fs::path file = cache_->directory() / "digits.hone";
  write_plan(file, *plan_);
  std::atomic<int> wrong{0};
  at_once(8, [&](int t) {
    for (int i = 0; i < 30; ++i) {
      const auto executable = Executable::open(file, open_device("cpu"));
      Session session(executable, {.threads = 1 + t % 2});
      wrong += run(session, (t + i) % inputs) != serial_[(t + i) % inputs];
    }
  });
  EXPECT_EQ(wrong, 0);
}

// The threads share the compile cache on disk and write the same entries.
TEST_F(Concurrency, CompilationsAtOnceGiveTheSamePlan) {
  EmptyCache fresh;
  std::atomic<int> wrong{0};
  at_once(4, [&](int t) {
    auto plan = std::make_shared<const Plan>(compile(digits(), {.strategy = "cpu", .threads = 1}));
    wrong += run(*session_of(plan), t) != serial_[t];
  });
  EXPECT_EQ(wrong, 0);
  ::setenv("HONE_CACHE_DIR", cache_->directory().c_str(), 1);
}

TEST_F(Concurrency, AStoppedRunLeavesTheSessionUsable) {
  Session session(Executable::load(plan_, open_device("cpu")), {.threads = 2});
  std::mt19937 random(7);
  int stopped = 0;
  for (int i = 0; i < 200; ++i) {
    std::stop_source stop;
    session.set_stop_token(stop.get_token());
    if (i % 8 == 0) stop.request_stop();
    std::jthread other([&, wait = random() % 60] {
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(wait);
      while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
      stop.request_stop();
    });
    const int k = i % inputs;
    try {
      EXPECT_EQ(run(session, k), serial_[k]);
    } catch (const Cancelled&) {
      ++stopped;
    }
    other.join();
    session.set_stop_token({});
    ASSERT_EQ(run(session, k), serial_[k]) << "after a stop";
  }
  EXPECT_GE(stopped, 200 / 8);
}

TEST_F(Concurrency, AForkedChildMayRunAloneAndIsToldWhenItsThreadsAreGone) {
  Session alone(Executable::load(plan_, open_device("cpu")), {.threads = 1});
  Session several(Executable::load(plan_, open_device("cpu")), {.threads = 3});
  EXPECT_EQ(run(several, 1), serial_[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 0;
    if (run(alone, 2) != serial_[2]) status |= 1;
    try {  // small steps do not need a second thread
      if (run(several, 2) != serial_[2]) status |= 1;
    } catch (const UserError& e) {
      if (std::string_view(e.what()).find("fork") == std::string_view::npos) status |= 2;
    } catch (...) {
      status |= 4;
    }
    ::_exit(status);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0)
      << "1: wrong numbers, 2: not a word of the fork, 4: other error";
  EXPECT_EQ(run(several, 1), serial_[1]);
}

}  // namespace
}  // namespace hone
