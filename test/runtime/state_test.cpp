// States: who may use them when, what an update that fails leaves, and their files. The kernels are
// functions of this program, so that sanitizers see them.
#include "runtime/state.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "plans.h"
#include "runtime/cancelled.h"
#include "runtime/session.h"
#include "type/safetensors.h"

namespace hone {
namespace {

using test::add_kernels;
using test::dense;
using test::launch_of;
using test::plan_of;

constexpr std::int64_t length = 512;

std::stop_source* stopped_by_kernel = nullptr;

// y = x + 1
void increment(void* const* buffers, const std::int64_t*, std::int64_t, std::int64_t, void*) {
  const auto* x = static_cast<const std::int64_t*>(buffers[0]);
  auto* y = static_cast<std::int64_t*>(buffers[1]);
  for (std::int64_t i = 0; i < length; ++i) y[i] = x[i] + 1;
  if (stopped_by_kernel) stopped_by_kernel->request_stop();
}

// y = x
void copy(void* const* buffers, const std::int64_t*, std::int64_t, std::int64_t, void*) {
  std::memcpy(buffers[1], buffers[0], length * sizeof(std::int64_t));
}

const Type row_type(DType::i64, {length}), flag_type(DType::i64, {});

PlanEntry entry_of(std::string name, std::vector<PlanParam> params,
                   std::vector<PlanParam> results) {
  PlanEntry e = plan_of(std::move(params), std::move(results)).main();
  e.name = std::move(name);
  return e;
}

// States "first" and "second", equal after every whole update. Entry `update` adds one to the
// first, requires that its input is 0, and adds one to the second; `read` returns both.
Plan counters() {
  Plan p;
  p.name = "counters";
  p.states = {{"first", "model", row_type, 0}, {"second", "model", row_type, length * 8}};
  add_kernels(p, {{"increment", increment}, {"copy", copy}});
  const Dim bytes = length * 8;
  const auto at = [](std::uint32_t buffer) { return dense(buffer, DType::i64, {length}); };
  PlanEntry update = entry_of(
      "update", {{"first", row_type, true}, {"second", row_type, true}, {"fails", flag_type}},
      {{"next first", row_type}, {"next second", row_type}});
  update.result_alias = {0, 1};
  update.states = {0, 1, PlanEntry::no_state};
  using Kind = PlanBuffer::Kind;
  Variant& u = update.variants[0];
  u.buffers = {{Kind::param, 0, 0, bytes},
               {Kind::result, 0, 0, bytes},
               {Kind::param, 1, 0, bytes},
               {Kind::result, 1, 0, bytes},
               {Kind::param, 2, 0, 8}};
  Step requirement{.kind = Step::Kind::require, .name = "update: input 'fails'"};
  requirement.operands = {dense(4, DType::i64, {})};
  requirement.written = {false};
  requirement.scalars = {0, 0};
  u.steps = {launch_of(0, {at(0), at(1)}, {false, true}, {}), requirement,
             launch_of(0, {at(2), at(3)}, {false, true}, {})};
  PlanEntry read = entry_of("read", {{"first", row_type}, {"second", row_type}},
                            {{"a", row_type}, {"b", row_type}});
  read.states = {0, 1};
  Variant& r = read.variants[0];
  r.buffers = {{Kind::param, 0, 0, bytes},
               {Kind::result, 0, 0, bytes},
               {Kind::param, 1, 0, bytes},
               {Kind::result, 1, 0, bytes}};
  r.steps = {launch_of(1, {at(0), at(1)}, {false, true}, {}),
             launch_of(1, {at(2), at(3)}, {false, true}, {})};
  p.entries = {update, read};
  return p;
}

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
  constexpr int updates = 2000, readers = 16;
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
  for (int i = 0; i < updates; ++i) update.run(zero);
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
