// States: who may use them when, what an update that fails leaves, and their files. The kernels are
// functions of this program, so that sanitizers see them.
#include "runtime/state.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "runtime/cancelled.h"
#include "runtime/session.h"
#include "state_plan.h"
#include "type/safetensors.h"

namespace hone {
namespace {

using test::counters;
constexpr std::int64_t length = test::counter_length;
std::stop_source*& stopped_by_kernel = test::counter_stops;

std::vector<Array> flag(std::int64_t n) { return {Array::scalar_int(n, DType::i64)}; }

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "accepted";
}

void expect_says(const std::string& text, std::string_view part, int line) {
  EXPECT_NE(text.find(part), std::string::npos) << "line " << line << ": " << text;
}
#define EXPECT_SAYS(text, part) expect_says(text, part, __LINE__)

class States : public testing::Test {
 protected:
  std::shared_ptr<const Executable> executable = test::load(counters());
  State state{executable};
  Session update{executable, {.threads = 1, .entry = "update", .states = {state}}};
  Session read{executable, {.threads = 1, .entry = "read", .states = {state}}};

  ~States() override { stopped_by_kernel = nullptr; }
  std::int64_t value() { return read.run(std::vector<Array>{})[1].integer(0); }
};

TEST_F(States, KeepWhatWasStored) {
  for (int i = 0; i < 5; ++i) update.run(flag(0));
  EXPECT_EQ(value(), 5);
  EXPECT_EQ(state.version("model"), 5u);
  EXPECT_EQ(state.read("first").integer(length - 1), 5);
  EXPECT_EQ(update.memory().states, 2u * length * 8);
  state.reset();
  EXPECT_EQ(value(), 0);
}

TEST_F(States, ReadersSeeWholeUpdates) {
  constexpr int least_updates = 2000, readers = 16;
  std::atomic<bool> is_done = false;
  std::atomic<std::int64_t> torn = 0, reads = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < readers; ++t)
    threads.emplace_back([&] {
      Session mine(executable, {.threads = 1, .entry = "read", .states = {state}});
      std::int64_t last = 0;
      while (!is_done) {
        const std::vector<Array> got = mine.run(std::vector<Array>{});
        const std::int64_t now = got[0].integer(0);
        for (std::int64_t i = 0; i < length; i += 37)
          torn += got[0].integer(i) != now || got[1].integer(i) != now || now < last;
        last = now;
        ++reads;
      }
    });
  const std::vector<Array> zero = flag(0);
  int updates = 0;  // until threads that start late have read, too
  for (; updates < least_updates || reads <= 4 * readers; ++updates) update.run(zero);
  is_done = true;
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(torn, 0);
  EXPECT_GT(reads, readers);
  EXPECT_EQ(value(), updates);
}

TEST_F(States, AreTornByAnUpdateThatFailsAfterItsFirstWrite) {
  update.run(flag(0));
  EXPECT_SAYS(refusal([&] { update.run(flag(7)); }), "input 'fails' is 7");
  EXPECT_TRUE(state.is_torn("model"));
  EXPECT_EQ(state.version("model"), 1u);
  EXPECT_SAYS(refusal([&] { value(); }), "'model' are torn");
  EXPECT_SAYS(refusal([&] { update.run(flag(0)); }), "torn");
  EXPECT_SAYS(refusal([&] { state.read("first"); }), "torn");
  EXPECT_SAYS(refusal([&] { state.save(std::filesystem::temp_directory_path() / "torn"); }),
              "torn");
  State other(executable);
  EXPECT_SAYS(refusal([&] { other.assign(state); }), "torn");
  state.write("first", Array::zeros(DType::i64, {length}));
  EXPECT_TRUE(state.is_torn("model"));  // the second is still of another update
  state.assign(other);
  EXPECT_FALSE(state.is_torn("model"));
  update.run(flag(0));
  EXPECT_EQ(value(), 1);
}

TEST_F(States, AStopActsBeforeTheFirstWriteOnly) {
  std::stop_source before;
  before.request_stop();
  update.set_stop_token(before.get_token());
  EXPECT_THROW(update.run(flag(0)), Cancelled);
  EXPECT_FALSE(state.is_torn("model"));
  EXPECT_EQ(value(), 0);
  std::stop_source during;
  stopped_by_kernel = &during;
  update.set_stop_token(during.get_token());
  update.run(flag(0));
  stopped_by_kernel = nullptr;
  EXPECT_EQ(value(), 1);
  update.set_stop_token({});
  update.set_deadline(std::chrono::steady_clock::now() - std::chrono::seconds(1));
  EXPECT_THROW(update.run(flag(0)), Cancelled);
  EXPECT_EQ(value(), 1);
}

TEST_F(States, AWaitingRunObeysItsDeadlineAndItsStop) {
  FairLock& lock = state.group("model")->lock;
  ASSERT_TRUE(lock.lock(FairLock::Mode::exclusive));
  read.set_deadline(std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
  EXPECT_SAYS(refusal([&] { value(); }), "while it waited for states 'model'");
  read.clear_deadline();
  std::stop_source stop;
  update.set_stop_token(stop.get_token());
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop.request_stop();
  });
  EXPECT_THROW(update.run(flag(0)), Cancelled);
  stopper.join();
  lock.unlock(FairLock::Mode::exclusive);
  EXPECT_EQ(value(), 0);
}

TEST(FairLock, GrantsInTheOrderOfRequests) {
  using Mode = FairLock::Mode;
  FairLock lock;
  std::vector<int> order;
  std::mutex mutex;
  ASSERT_TRUE(lock.lock(Mode::shared));
  std::vector<std::thread> threads;
  const auto add = [&](int number, Mode mode) {
    threads.emplace_back([&, number, mode] {
      lock.lock(mode);
      {
        const std::lock_guard guard(mutex);
        order.push_back(number);
      }
      lock.unlock(mode);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  };
  add(0, Mode::exclusive);  // waits for the reader
  add(1, Mode::shared);     // behind the writer, although only a reader holds the lock
  add(2, Mode::exclusive);
  {
    const std::lock_guard guard(mutex);
    EXPECT_TRUE(order.empty());
  }
  lock.unlock(Mode::shared);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST_F(States, ASessionNeedsThemAll) {
  const auto open = [&](std::vector<State> states) {
    return refusal([&] { Session(executable, {.entry = "read", .states = std::move(states)}); });
  };
  EXPECT_SAYS(open({}), "no State of it is given");
  EXPECT_SAYS(open({state, State(executable)}), "two States");
  Plan other = counters();
  other.states[1].name = "renamed";
  EXPECT_SAYS(open({State(test::load(other))}), "other states");
  EXPECT_SAYS(refusal([&] { Session s(executable); }), "has entries 'update', 'read'");
  EXPECT_SAYS(refusal([&] { Session(executable, {.entry = "reed"}); }), "no entry 'reed'");
  EXPECT_SAYS(refusal([&] { State(executable, {.groups = {"modle"}}); }), "'modle'");
  EXPECT_SAYS(refusal([&] { State(test::load(test::scale_and_add())); }), "has no states");
}

TEST_F(States, AreSavedAndLoadedByName) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / cat("states.", ::getpid(), ".safetensors");
  for (int i = 0; i < 3; ++i) update.run(flag(0));
  state.save(file);
  State again(executable);
  again.load(file);
  EXPECT_EQ(again.read("second").integer(5), 3);
  const Array row = state.read("first"), zeros = Array::zeros(DType::i64, {length});
  const auto written = [&](std::vector<SafetensorsEntry> tensors) {
    write_safetensors(file, {}, tensors);
    return file;
  };
  EXPECT_SAYS(refusal([&] { again.load(written({{"first", zeros}})); }), "lacks 'second'");
  EXPECT_SAYS(refusal([&] {
                again.load(written({{"first", zeros}, {"second", Array::zeros(DType::i64, {3})}}));
              }),
              "but state 'second' is");
  const std::vector<SafetensorsEntry> more = {
      {"first", zeros}, {"second", zeros}, {"third", zeros}};
  EXPECT_SAYS(refusal([&] { again.load(written(more)); }), "has 'third'");
  EXPECT_EQ(again.read("first").integer(0), 3);  // nothing was changed
  again.load(written(more), {.ignores_others = true});
  EXPECT_EQ(again.read("first").integer(0), 0);
  again.load(written({{"first", zeros}, {"old", row}}), {.renamed = {{"old", "second"}}});
  EXPECT_EQ(again.read("second").integer(0), 3);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace hone
