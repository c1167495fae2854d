// A program with states, from the compiler's interface to a file, and run from it by the runtime's.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "api/compiler.h"
#include "api/runtime/runtime.h"
#include "test/compile/models.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::int32_t input = ProgramEntry::no_state;

// A line through points, fitted by gradient descent: y = a x + b.
ProgramGraph line() {
  const Dim n = Dim::symbol("n", 1, 256);
  ProgramGraph p{"line", {{"a", "model", f32({1})}, {"b", "model", f32({1})}}, {}};
  p.states.push_back({"steps", "optimizer", Type(DType::i64, {})});
  {
    Builder f;
    const Value a = f.donated_input(f32({1}), "a"), b = f.donated_input(f32({1}), "b"),
                steps = f.donated_input(Type(DType::i64, {}), "steps"), x = f.input(f32({n}), "x"),
                y = f.input(f32({n}), "y");
    const Value off = x * broadcast_to(a, {n}) + broadcast_to(b, {n}) - y;
    const auto sum = [&](const Value& v) {
      return reshape_to(reduce_axes(ops::reduce_sum, v, {0}), {1});
    };
    f.output(sum(off * off), "loss");
    f.output(a - sum(off * x) * 0.01, "next a", a);
    f.output(b - sum(off) * 0.01, "next b", b);
    f.output(steps + integer_like(steps, 1), "next steps", steps);
    p.entries.push_back({"fit", f.function(), {0, 1, 2, input, input}});
  }
  {
    Builder f;
    const Value x = f.input(f32({n}), "x"), a = f.input(f32({1}), "a"), b = f.input(f32({1}), "b");
    f.output(x * broadcast_to(a, {n}) + broadcast_to(b, {n}), "y");
    p.entries.push_back({"evaluate", f.function(), {input, 0, 1}});
  }
  return p;
}

class Programs : public testing::Test {
 protected:
  test::EmptyCache cache;
  fs::path file = cache.directory() / "line.hone";
};

TEST_F(Programs, AreTrainedAndServedByTheRuntimeAlone) {
  OptimizeRequest request;
  request.strategies = {"cpu"};
  request.rounds = 3;
  request.budget = 1;
  write_plan(file, optimize(line(), request).plan);
  runtime::Executable executable(file.string());
  runtime::State state(executable), served(executable, {"model"});
  runtime::Session fit(executable, {.threads = 1, .entry = "fit", .states = {&state}});
  runtime::Session evaluate(executable, {.threads = 1, .entry = "evaluate", .states = {&served}});
  std::vector<float> x(16), y(16), loss(1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = 0.1f * static_cast<float>(i);
    y[i] = 3 * x[i] - 1;
  }
  fit.bind_input(fit.input("x"), {16}, x);
  fit.bind_input(fit.input("y"), {16}, y);
  fit.bind_output(fit.output("loss"), {1}, loss);
  for (int i = 0; i < 1000; ++i) fit.run();
  EXPECT_LT(loss[0], 1e-3);
  std::vector<std::int64_t> steps(1);
  state.read("steps", steps);
  EXPECT_EQ(steps[0], 1000);
  EXPECT_EQ(state.version("optimizer"), 1000u);

  std::vector<float> at = {2}, got(1);
  evaluate.bind_input(0, {1}, at);
  evaluate.bind_output(0, {1}, got);
  evaluate.run();
  EXPECT_EQ(got[0], 0);
  served.assign(state);
  evaluate.run();
  EXPECT_NEAR(got[0], 5, 0.05);

  const std::string saved = (cache.directory() / "line.safetensors").string();
  state.save(saved);
  runtime::State again(executable);
  again.load(saved);
  std::vector<float> a(1), b(1);
  state.read("a", a);
  again.read("a", b);
  EXPECT_EQ(a[0], b[0]);
  again.reset();
  again.read("a", b);
  EXPECT_EQ(b[0], 0);
}

TEST_F(Programs, AreLoadedFromMemory) {
  write_plan(file, compile(line(), {.strategy = "cpu"}));
  std::ifstream stream(file, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  for (std::size_t shift : {0, 1}) {
    std::vector<std::byte> memory(text.size() + 128);
    std::byte* first = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
    std::memcpy(first + shift, text.data(), text.size());
    const runtime::Executable executable(std::span<const std::byte>(first + shift, text.size()));
    runtime::State state(executable);
    runtime::Session evaluate(executable, {.threads = 1, .entry = "evaluate", .states = {&state}});
    std::vector<float> x = {2}, y(1), a = {3};
    state.write("a", a);
    evaluate.bind_input(0, {1}, x);
    evaluate.bind_output(0, {1}, y);
    evaluate.run();
    EXPECT_EQ(y[0], 6);
  }
  try {
    const runtime::Executable executable(std::as_bytes(std::span(text).first(100)));
    ADD_FAILURE() << "accepted";
  } catch (const runtime::Error& e) {
    EXPECT_NE(std::string(e.what()).find("plan in memory"), std::string::npos) << e.what();
  }
}

// A process that is killed while it saves leaves an older file or the new one, whole.
TEST_F(Programs, AreSavedAtomically) {
  ProgramGraph big{"big", {{"w", "model", f32({1 << 20})}}, {}};
  Builder f;
  const Value w = f.donated_input(f32({1 << 20}), "w");
  f.output(w + 1.0, "next w", w);
  big.entries.push_back({"count", f.function(), {0}});
  const auto executable = Executable::load(
      std::make_shared<const Plan>(compile(big, {.strategy = "cpu"})), open_device("cpu"));
  const fs::path saved = cache.directory() / "w.safetensors";
  State(executable).save(saved);
  std::mt19937 random(7);
  int kills_during_a_write = 0;
  for (int i = 0; i < 60; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      State state(executable);
      state.load(saved);
      Session count(executable, {.threads = 1, .states = {state}});
      for (;;) {
        count.run(std::vector<Array>{});
        state.save(saved);
      }
    }
    ::usleep(20000 + random() % 20000);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    bool is_left = false;
    for (const auto& entry : fs::directory_iterator(cache.directory()))
      if (entry.path() != saved &&
          entry.path().string().find("w.safetensors") != std::string::npos) {
        is_left = true;
        fs::remove(entry.path());
      }
    kills_during_a_write += is_left;
    State state(executable);
    state.load(saved);
    const Array now = state.read("w");
    for (std::int64_t k = 1; k < now.count(); k += 1013)
      ASSERT_EQ(now.real(k), now.real(0)) << "kill " << i;
  }
  EXPECT_GE(kills_during_a_write, 20) << "of 60";
}

TEST_F(Programs, SelfTestsAndCommandsKnowEntries) {
  OptimizeRequest request;
  request.strategies = {"cpu"};
  request.rounds = 3;
  request.budget = 1;
  write_plan(file, optimize(line(), request).plan);
  const fs::path out = cache.directory() / "out";
  const auto hone = [&](const std::string& words) {
    const std::string command = cat(HONE_PROGRAM, words, " > ", out.string(), " 2>&1");
    const int status = std::system(command.c_str());
    std::ifstream text(out);
    return std::pair(status, std::string(std::istreambuf_iterator<char>(text), {}));
  };
  const auto expect_says = [&](const std::string& words, int status, std::string_view part) {
    const auto [got, text] = hone(words);
    EXPECT_EQ(got == 0, status == 0) << words << ": " << text;
    EXPECT_NE(text.find(part), std::string::npos) << words << ": " << text;
  };
  const std::string plan = " " + file.string();
  expect_says(" selftest" + plan, 0, "entry evaluate, variant 0");
  expect_says(" inspect" + plan, 0, "optimizer");
  expect_says(" check" + plan, 0, "fine");
  expect_says(" run" + plan, 1, "has entries 'fit', 'evaluate'");
  expect_says(" explain" + plan + " --entry evaluate", 0, "line.evaluate");
  expect_says(" bench" + plan + " --entry fit -t 0.01", 0, "median");
  const std::string x = (cache.directory() / "x.npy").string();
  write_npy(x, Array::zeros(DType::f32, {4}));
  const std::string first = (cache.directory() / "1.safetensors").string();
  expect_says(cat(" run", plan, " --entry fit -i ", x, " -i ", x, " -o ",
                  cache.directory().string(), " --save-state ", first),
              0, "states -> ");
  expect_says(cat(" run", plan, " --entry evaluate -i ", x, " -o ", cache.directory().string(),
                  " --state ", first),
              0, "y: f32[4]");
  expect_says(cat(" run", plan, " --entry evaluate -i ", x, " --state ", x), 1, x);
}

}  // namespace
}  // namespace hone
