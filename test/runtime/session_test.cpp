#include "runtime/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include "plan/plan_file.h"
#include "plans.h"
#include "runtime/prepare.h"

namespace hone {
namespace {

using test::add_kernels;
using test::dense;
using test::launch_of;
using test::load;
using test::Memory;
using test::n;
using test::plan_of;
using test::scale_and_add;

using Sizes = std::vector<std::int64_t>;

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "accepted";
}

// Expects that the text contains a part; prints the text on failure.
void expect_says(std::string_view text, std::string_view part, int line) {
  EXPECT_NE(text.find(part), std::string_view::npos) << "line " << line << ": " << text;
}
#define EXPECT_SAYS(text, part) expect_says(text, part, __LINE__)

Array ramp(std::int64_t count) {
  Array a = Array::zeros(DType::f32, {count});
  for (std::int64_t i = 0; i < count; ++i) a.set_real(i, static_cast<double>(i % 1000) / 8);
  return a;
}

void expect_scaled_and_added(const Array& x, std::span<const float> z) {
  ASSERT_EQ(static_cast<std::int64_t>(z.size()), x.count());
  for (std::size_t i = 0; i < z.size(); ++i)
    ASSERT_EQ(z[i], x.as<float>()[i] * 2 + 1 + static_cast<float>(i % 4 + 1)) << i;
}

TEST(Session, RunsStepsForEverySize) {
  Session s(load(scale_and_add()), {.threads = 2});
  for (std::int64_t count : {1, 7, 1024, 5000, 100000, 0, 7}) {
    const Array x = ramp(count);
    const std::vector<Array> out = s.run(std::span(&x, 1));
    expect_scaled_and_added(x, out[0].as<float>());
  }
  EXPECT_EQ(s.counters().runs, 7);
  EXPECT_EQ(s.counters().launches, 12);  // none for size 0
  EXPECT_EQ(s.counters().binds, 6);
}

TEST(Session, CountsTheTimeUntilStepsAreSubmitted) {
  Session s(load(scale_and_add()), {.threads = 1});
  const auto start = std::chrono::steady_clock::now();
  std::chrono::nanoseconds last{};
  for (int i = 0; i < 5; ++i) {
    s.run(std::vector{ramp(1000)});
    EXPECT_GT(s.counters().submitting, last);
    last = s.counters().submitting;
  }
  EXPECT_LT(last, std::chrono::steady_clock::now() - start);
}

TEST(Session, KeepsOnlyTheLastSizes) {
  Session s(load(scale_and_add()), {.threads = 1, .most_sizes = 2});
  for (std::int64_t count : {1, 2, 1, 2, 3, 2, 1}) s.run(std::vector{ramp(count)});
  EXPECT_EQ(s.counters().binds, 4);  // 1, 2, 3 (drops 1), 1 (drops 3)
}

TEST(Session, CallersBuffersAreUsedInPlace) {
  Session s(load(scale_and_add()), {.threads = 1});
  Memory<float> x(100), z(100), other(100);
  for (std::size_t i = 0; i < 100; ++i) x[i] = static_cast<float>(i);
  const Sizes dims = {100};
  s.bind_input(0, {DType::f32, dims, x.memory()});
  EXPECT_EQ(s.output_dims(), std::vector<Sizes>{{100}});
  s.bind_output(0, {DType::f32, dims, z.memory()});
  s.run();
  EXPECT_EQ(z[3], 3 * 2 + 1 + 4);
  x[3] = 10;
  s.run();
  EXPECT_EQ(z[3], 10 * 2 + 1 + 4);
  s.bind_output(0, {DType::f32, dims, other.memory()});
  s.run();
  EXPECT_EQ(other[3], 10 * 2 + 1 + 4);
  EXPECT_EQ(s.counters().staged_copies, 0);
}

TEST(Session, MemoryThatIsNotAlignedIsCopiedAndCounted) {
  Session s(load(scale_and_add()), {.threads = 1});
  Memory<float> x(100, 4), z(100, 12);
  for (std::size_t i = 0; i < 100; ++i) x[i] = static_cast<float>(i);
  const Sizes dims = {100};
  const TensorRef in{DType::f32, dims, x.memory()}, out{DType::f32, dims, z.memory()};
  s.bind_input(0, in);
  s.bind_output(0, out);
  EXPECT_EQ(s.memory().staging, 800u);
  s.run();
  for (std::size_t i = 0; i < 100; ++i)
    EXPECT_EQ(z[i], x[i] * 2 + 1 + static_cast<float>(i % 4 + 1));
  EXPECT_EQ(s.counters().staged_copies, 2);
}

TEST(Session, NamesWhatDoesNotFit) {
  Plan p = plan_of({{"a", f32({n, 3})}, {"b", f32({n, n + 1})}}, {});
  p.main().params[0].type.shape.dims[0] = p.main().params[1].type.shape.dims[0] =
      Dim::symbol("m", 1, 8);
  p.main().params[1].type.shape.dims[1] = Dim::symbol("m", 1, 8) + 1;
  Session s(load(p));
  const auto run = [&](Sizes a, Sizes b) {
    return refusal([&] {
      const Array inputs[] = {Array::zeros(DType::f32, a), Array::zeros(DType::f32, b)};
      s.run(inputs);
    });
  };
  EXPECT_EQ(run({2, 3}, {2, 3}), "accepted");
  EXPECT_SAYS(run({2, 3}, {4, 5}), "size m is 2 in input 'a' and 4 in input 'b'");
  EXPECT_SAYS(run({2, 4}, {2, 3}), "input 'a': axis 1 is 4, expected 3");
  EXPECT_SAYS(run({2, 3}, {2, 4}), "input 'b': axis 1 is 4, expected 3 = (1+m)");
  EXPECT_SAYS(run({9, 3}, {9, 10}), "axis 0 (m) is 9, expected 1 to 8");
  EXPECT_SAYS(run({2}, {2, 3}), "input 'a' is f32[2], expected f32[m,3]; reshape it");
  EXPECT_SAYS(refusal([&] { s.run(std::vector{Array::zeros(DType::f32, {2, 3})}); }),
              "got 1 inputs, expected 2");
  EXPECT_SAYS(refusal([&] {
                const Array inputs[] = {Array::zeros(DType::i32, {2, 3}), Array()};
                s.run(inputs);
              }),
              "input 'a' is i32[2,3]");
  EXPECT_EQ(run({3, 3}, {3, 4}), "accepted");  // a refused call leaves the session usable
}

TEST(Session, RefusesOutputsThatDoNotFit) {
  Session s(load(scale_and_add()));
  Memory<float> x(100), z(100);
  const Sizes hundred = {100}, ninety = {90};
  const TensorRef in{DType::f32, hundred, x.memory()};
  const auto run = [&](TensorRef out) {
    return refusal([&] { s.run(std::span(&in, 1), std::span(&out, 1)); });
  };
  EXPECT_SAYS(run({DType::f32, ninety, memory_of(z.data(), 90)}),
              "output 'z' is f32[90], expected f32[100]");
  EXPECT_SAYS(run({DType::f32, hundred, memory_of(z.data(), 99)}),
              "output 'z' has 396 bytes of memory, expected exactly 400 for f32[100]");
  EXPECT_SAYS(run({DType::f32, {}, memory_of(z.data(), 1)}),
              "output 'z' is f32[], expected f32[n]");
  EXPECT_SAYS(run({DType::i32, hundred, z.memory()}), "output 'z' is i32");
  EXPECT_SAYS(run({DType::f32, hundred, {}}), "has 0 bytes of memory");
  EXPECT_SAYS(run({DType::f32, hundred, {static_cast<std::byte*>(nullptr), 400}}),
              "the memory is null");
  EXPECT_SAYS(run({DType::f32, hundred, x.memory()}), "shares memory with input 'x'");
  EXPECT_SAYS(run({DType::f32, hundred, memory_of(x.data() + 99, 100)}),
              "shares memory with input 'x'");
  EXPECT_EQ(run({DType::f32, hundred, z.memory()}), "accepted");
  Session fresh(load(scale_and_add()));
  EXPECT_SAYS(refusal([&] { fresh.run(); }), "input 'x' is not bound");
  fresh.bind_input(0, in);
  EXPECT_SAYS(refusal([&] { fresh.run(); }), "output 'z' is not bound");
  EXPECT_SAYS(refusal([&] { fresh.bind_input(1, in); }),
              "input 1 does not exist; the plan has 1 inputs");
}

TEST(Session, ChecksAreEvaluatedBeforeTheRun) {
  Plan p = scale_and_add();
  p.main().checks = {{n, floor_div(n, 4) * 4, "rows must be whole"}};
  Session s(load(p));
  EXPECT_NO_THROW(s.run(std::vector{ramp(8)}));
  EXPECT_SAYS(refusal([&] { s.run(std::vector{ramp(9)}); }), "rows must be whole: n is 9 and ");
  EXPECT_SAYS(refusal([&] { s.run(std::vector{ramp(9)}); }), "is 8, with n = 9");
}

// Copies constant k to the result, to show which variant ran.
Variant constant_variant(Plan& p, float k, std::vector<Guard> guards, std::string target) {
  const auto w = static_cast<std::uint32_t>(p.weights.size());
  p.weights.push_back({cat("w", w), Array::of<float>(DType::f32, {1}, std::span(&k, 1))});
  Variant v;
  v.devices[0].target = std::move(target);
  v.guards = std::move(guards);
  v.buffers = {{PlanBuffer::Kind::weight, w, 0, 4}, {PlanBuffer::Kind::result, 0, 0, 4}};
  v.results = {f32({1})};
  Step copy{.kind = Step::Kind::copy};
  copy.operands = {dense(0, DType::f32, {1}), dense(1, DType::f32, {1})};
  copy.written = {false, true};
  v.steps = {copy};
  return v;
}

Plan guarded_plan() {
  Plan p = plan_of({{"x", f32({n})}}, {{"y", f32({1})}});
  p.main().variants.clear();
  const std::vector<Guard> one = {{Guard::Kind::equal, n, 1}},
                           few = {{Guard::Kind::less_equal, n, 10}, {Guard::Kind::not_equal, n, 5}};
  p.main().variants.push_back(constant_variant(p, 1, one, "x86-64-v3"));
  p.main().variants.push_back(constant_variant(p, 2, few, "x86-64-v2"));
  p.main().variants.push_back(constant_variant(p, 3, one, "x86-64-v1"));
  p.main().variants.push_back(constant_variant(p, 4, few, "x86-64-v3"));
  p.main().variants.push_back(
      constant_variant(p, 5, {{Guard::Kind::greater, n, 20}}, "no-such-target"));
  return p;
}

float chosen(Session& s, std::int64_t count) {
  return s.run(std::vector{ramp(count)})[0].as<float>()[0];
}

TEST(Session, TellsWhichOfManyShareMemory) {
  const std::vector<PlanParam> three = {{"a", f32({4})}, {"b", f32({4})}, {"c", f32({4})}};
  std::vector<PlanParam> results = {{"p", f32({4})}, {"q", f32({4})}, {"r", f32({4})}};
  Plan plan = plan_of(three, results);
  plan.main().variants[0].results = {f32({4}), f32({4}), f32({4})};
  Session s(load(plan));
  Memory<float> memory(64);
  const Sizes four = {4};
  // The offsets of a, b, c, p, q, r.
  const auto run = [&](std::array<std::size_t, 6> begin) {
    std::vector<TensorRef> in, out;
    for (std::size_t i = 0; i < 6; ++i)
      (i < 3 ? in : out).push_back({DType::f32, four, memory_of(memory.data() + begin[i], 4)});
    return refusal([&] { s.run(in, out); });
  };
  EXPECT_EQ(run({0, 4, 8, 12, 16, 20}), "accepted");
  EXPECT_EQ(run({4, 4, 4, 8, 0, 12}), "accepted");  // inputs may overlap, neighbours may touch
  EXPECT_SAYS(run({0, 4, 8, 20, 16, 23}), "output 'r' shares memory with output 'p'");
  EXPECT_SAYS(run({0, 4, 8, 16, 20, 16}), "output 'r' shares memory with output 'p'");
  EXPECT_SAYS(run({0, 40, 8, 12, 37, 20}), "output 'q' shares memory with input 'b'");
  EXPECT_SAYS(run({60, 40, 23, 12, 16, 20}), "output 'r' shares memory with input 'c'");
  EXPECT_SAYS(run({15, 40, 50, 12, 24, 20}), "output 'p' shares memory with input 'a'");
}

TEST(Session, ChoosesTheWidestVariantWhoseGuardsHold) {
  Session s(load(guarded_plan()));
  EXPECT_EQ(chosen(s, 1), 1);
  EXPECT_EQ(chosen(s, 4), 4);
  EXPECT_SAYS(refusal([&] { chosen(s, 5); }), "no variant of the plan supports n = 5");
  EXPECT_SAYS(refusal([&] { chosen(s, 21); }), "no variant of the plan supports n = 21");
}

class IsaFlag {
 public:
  explicit IsaFlag(const char* isa) { ::setenv("HONE_CPU_ISA", isa, 1); }
  ~IsaFlag() { ::unsetenv("HONE_CPU_ISA"); }
};

TEST(Session, IsaFlagChoosesTheTarget) {
  IsaFlag flag("x86-64-v2");
  Session s(load(guarded_plan()));
  EXPECT_EQ(chosen(s, 1), 2);
  EXPECT_EQ(chosen(s, 4), 2);
  Plan p = guarded_plan();
  p.main().variants.erase(p.main().variants.begin() + 1, p.main().variants.begin() + 3);
  EXPECT_SAYS(refusal([&] { load(p); }),
              "is compiled for no-such-target, x86-64-v3, but this machine runs x86-64-v2");
}

// while (i32 counter < limit) counter += 1, then copies it to the result.
void less_kernel(void* const* b, const std::int64_t*, std::int64_t, std::int64_t, void*) {
  *static_cast<bool*>(b[2]) = *static_cast<std::int32_t*>(b[0]) < *static_cast<std::int32_t*>(b[1]);
}
void increment_kernel(void* const* b, const std::int64_t*, std::int64_t, std::int64_t, void*) {
  ++*static_cast<std::int32_t*>(b[0]);
}
void clear_kernel(void* const* b, const std::int64_t*, std::int64_t, std::int64_t, void*) {
  *static_cast<std::int32_t*>(b[0]) = 0;
}

Plan counting_plan() {
  Plan p = plan_of({{"limit", i32({})}}, {{"count", i32({})}});
  add_kernels(p, {{"less", less_kernel}, {"increment", increment_kernel}, {"clear", clear_kernel}});
  Variant& v = p.main().variants[0];
  v.buffers = {{PlanBuffer::Kind::param, 0, 0, 4},
               {PlanBuffer::Kind::result, 0, 0, 4},
               {PlanBuffer::Kind::arena, 0, 0, 4},
               {PlanBuffer::Kind::arena, 0, 64, 1}};
  v.devices[0].arena_bytes = 128;
  const View limit = dense(0, DType::i32, {}), count = dense(1, DType::i32, {}),
             counter = dense(2, DType::i32, {}), test = dense(3, DType::b1, {});
  Step loop{.kind = Step::Kind::loop, .name = "count up"};
  loop.operands = {test};
  loop.written = {false};
  loop.otherwise = {launch_of(0, {counter, limit, test}, {false, false, true}, {})};
  loop.body = {launch_of(1, {counter}, {true}, {})};
  Step copy{.kind = Step::Kind::copy};
  copy.operands = {counter, count};
  copy.written = {false, true};
  v.steps = {launch_of(2, {counter}, {true}, {}), loop, copy};
  return p;
}

std::int64_t count_to(Session& s, std::int32_t limit) {
  return s.run(std::vector{Array::scalar_int(limit, DType::i32)})[0].integer(0);
}

TEST(Session, LoopsRunWhileTheirTestHolds) {
  Session s(load(counting_plan()));
  EXPECT_EQ(count_to(s, 0), 0);
  EXPECT_EQ(count_to(s, 1), 1);
  EXPECT_EQ(count_to(s, 1000), 1000);
}

TEST(Session, StopsBetweenStepsWhenAsked) {
  Session s(load(counting_plan()));
  std::stop_source source;
  s.set_stop_token(source.get_token());
  const Array forever = Array::scalar_int(2'000'000'000, DType::i32);
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    source.request_stop();
  });
  try {
    s.run(std::span(&forever, 1));
    ADD_FAILURE() << "ran to its end";
  } catch (const Cancelled& c) {
    EXPECT_EQ(c.why, Cancelled::Why::stopped);
  }
  stopper.join();
  s.set_stop_token({});
  EXPECT_EQ(count_to(s, 3), 3);
}

TEST(Session, StopsAtItsDeadline) {
  Session s(load(counting_plan()));
  const auto start = std::chrono::steady_clock::now();
  s.set_deadline(start + std::chrono::milliseconds(20));
  try {
    count_to(s, 2'000'000'000);
    ADD_FAILURE() << "ran to its end";
  } catch (const Cancelled& c) {
    EXPECT_EQ(c.why, Cancelled::Why::deadline);
    EXPECT_SAYS(c.what(), "its deadline passed before");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  s.clear_deadline();
  EXPECT_EQ(count_to(s, 3), 3);
}

TEST(Session, RunsInTheBackground) {
  Session s(load(counting_plan()));
  std::int32_t limit = 2'000'000'000;
  Memory<std::int32_t> count(1), in(1);
  in[0] = limit;
  s.bind_input(0, {DType::i32, {}, in.memory()});
  s.bind_output(0, {DType::i32, {}, count.memory()});
  std::stop_source source;
  s.set_stop_token(source.get_token());
  EXPECT_TRUE(s.poll());
  s.submit();
  EXPECT_FALSE(s.poll());
  EXPECT_SAYS(refusal([&] { s.run(); }), "is already running");
  EXPECT_SAYS(refusal([&] { s.submit(); }), "is already running");
  source.request_stop();
  EXPECT_THROW(s.wait(), Cancelled);
  EXPECT_TRUE(s.poll());
  s.set_stop_token({});
  for (in[0] = 1; in[0] < 50; ++in[0]) {
    s.submit();
    s.wait();
    EXPECT_EQ(count[0], in[0]);
  }
}

TEST(Session, MayBeDestroyedWhileItRuns) {
  Memory<std::int32_t> count(1), in(1);
  in[0] = 100000;
  {
    Session s(load(counting_plan()));
    s.bind_input(0, {DType::i32, {}, in.memory()});
    s.bind_output(0, {DType::i32, {}, count.memory()});
    s.submit();
  }
  EXPECT_TRUE(count[0] == 0 || count[0] == 100000);
}

// if (flag) y = 1 else y = 2, with refusals in the second branch.
Plan branching_plan(std::vector<Step> otherwise) {
  Plan p = plan_of({{"flag", b1({})}, {"x", f32({n})}}, {{"y", f32({1})}});
  Variant& v = p.main().variants[0];
  const float one = 1, two = 2;
  p.weights = {{"one", Array::of<float>(DType::f32, {1}, std::span(&one, 1))},
               {"two", Array::of<float>(DType::f32, {1}, std::span(&two, 1))}};
  v.buffers = {{PlanBuffer::Kind::param, 0, 0, 1},
               {PlanBuffer::Kind::result, 0, 0, 4},
               {PlanBuffer::Kind::weight, 0, 0, 4},
               {PlanBuffer::Kind::weight, 1, 0, 4},
               {PlanBuffer::Kind::param, 1, 0, n * 4}};
  Step branch{.kind = Step::Kind::branch};
  branch.operands = {dense(0, DType::b1, {})};
  branch.written = {false};
  Step copy{.kind = Step::Kind::copy};
  copy.written = {false, true};
  copy.operands = {dense(2, DType::f32, {1}), dense(1, DType::f32, {1})};
  branch.body = {copy};
  copy.operands = {dense(3, DType::f32, {1}), dense(1, DType::f32, {1})};
  branch.otherwise = std::move(otherwise);
  branch.otherwise.push_back(copy);
  v.steps = {branch};
  return p;
}

float branch(Session& s, bool flag, std::int64_t count) {
  const Array inputs[] = {Array::scalar_int(flag, DType::b1), ramp(count)};
  return s.run(inputs)[0].as<float>()[0];
}

TEST(Session, TakesOneBranch) {
  Session s(load(branching_plan({})));
  EXPECT_EQ(branch(s, true, 1), 1);
  EXPECT_EQ(branch(s, false, 1), 2);
}

TEST(Session, RefusesOnlyInABranchThatIsTaken) {
  Step always{.kind = Step::Kind::refuse, .name = "this rate is not served"};
  Session s(load(branching_plan({always})));
  EXPECT_EQ(branch(s, true, 1), 1);
  EXPECT_SAYS(refusal([&] { branch(s, false, 1); }), "this rate is not served");

  Step unequal{.kind = Step::Kind::refuse, .name = "n must be 4"};
  unequal.scalars = {n, 4};
  Session sizes(load(branching_plan({unequal})));
  EXPECT_EQ(branch(sizes, true, 3), 1);
  EXPECT_EQ(branch(sizes, false, 4), 2);
  EXPECT_SAYS(refusal([&] { branch(sizes, false, 3); }), "n must be 4");
}

TEST(Session, BranchThatSizesMakeImpossibleFailsWhenReached) {
  Step copy{.kind = Step::Kind::copy};
  copy.operands = {dense(4, DType::f32, {n - 4}), dense(4, DType::f32, {n - 4})};
  copy.written = {false, false};
  Session s(load(branching_plan({copy})));
  EXPECT_EQ(branch(s, true, 2), 1);
  EXPECT_SAYS(refusal([&] { branch(s, false, 2); }), "has size -2");
}

// Returns the index if it is outside [-n, n), else 0; and the clamped index.
void check_kernel(void* const* b, const std::int64_t* sizes, std::int64_t, std::int64_t, void*) {
  const std::int64_t i = *static_cast<const std::int64_t*>(b[0]), n = sizes[0];
  *static_cast<std::int64_t*>(b[2]) = i >= -n && i < n ? 0 : i;
  *static_cast<float*>(b[1]) = static_cast<float>(std::clamp(i, -n, n - 1));
}

TEST(Session, ARequirementThatIsNotMetRefusesTheRunWithItsNumber) {
  Plan p = plan_of({{"index", i64({})}}, {{"y", f32({})}});
  add_kernels(p, {{"check", check_kernel}});
  Variant& v = p.main().variants[0];
  v.buffers = {{PlanBuffer::Kind::param, 0, 0, 8},
               {PlanBuffer::Kind::result, 0, 0, 4},
               {PlanBuffer::Kind::arena, 0, 0, 8}};
  v.devices[0].arena_bytes = v.devices[0].arena_lower_bound = 8;
  Step require{.kind = Step::Kind::require, .name = "node 7 'pick' (Gather): index"};
  require.operands = {dense(2, DType::i64, {})};
  require.written = {false};
  require.scalars = {-10, 9};
  v.steps = {
      launch_of(0, {dense(0, DType::i64, {}), dense(1, DType::f32, {}), dense(2, DType::i64, {})},
                {false, true, true}, {10}),
      require};
  Session s(load(p));
  const auto run = [&](std::int64_t i) {
    return s.run(std::vector{Array::scalar_int(i, DType::i64)})[0].real(0);
  };
  EXPECT_EQ(run(9), 9);
  EXPECT_SAYS(refusal([&] { run(10); }), "node 7 'pick' (Gather): index is 10, expected -10 to 9");
  EXPECT_SAYS(refusal([&] { run(-11); }), "index is -11");
  EXPECT_EQ(run(3), 3);
}

// w -= 0.5 g in place; the second result is the sum of g.
void update_kernel(void* const* b, const std::int64_t* sizes, std::int64_t, std::int64_t, void*) {
  auto* w = static_cast<float*>(b[0]);
  const auto* g = static_cast<const float*>(b[1]);
  auto* w_new = static_cast<float*>(b[2]);
  auto* sum = static_cast<float*>(b[3]);
  *sum = 0;
  for (std::int64_t i = 0; i < sizes[0]; ++i) {
    w_new[i] = w[i] - 0.5f * g[i];
    *sum += g[i];
  }
}

Plan update_plan() {
  Plan p = plan_of({{"w", f32({n}), true}, {"g", f32({n})}},
                   {{"w_new", f32({n}), true}, {"sum", f32({})}});
  p.main().result_alias = {0, -1};
  add_kernels(p, {{"update", update_kernel}});
  Variant& v = p.main().variants[0];
  v.buffers = {{PlanBuffer::Kind::param, 0, 0, n * 4},
               {PlanBuffer::Kind::param, 1, 0, n * 4},
               {PlanBuffer::Kind::result, 0, 0, n * 4},
               {PlanBuffer::Kind::result, 1, 0, 4}};
  v.steps = {launch_of(0,
                       {dense(0, DType::f32, {n}), dense(1, DType::f32, {n}),
                        dense(2, DType::f32, {n}), dense(3, DType::f32, {})},
                       {false, false, true, true}, {n})};
  return p;
}

TEST(Session, DonatedParameterIsUpdatedInPlace) {
  const auto path = std::filesystem::path(testing::TempDir()) / "update.hone";
  write_plan(path, update_plan());
  Session s(Executable::open(path, open_cpu_device()));
  Memory<float> w(4), g(4), sum(1), elsewhere(4);
  for (std::size_t i = 0; i < 4; ++i) w[i] = 10, g[i] = static_cast<float>(i);
  const Sizes four = {4};
  const TensorRef inputs[] = {{DType::f32, four, w.memory()}, {DType::f32, four, g.memory()}};
  const auto run = [&](float* w_new) {
    const std::size_t room = w_new ? 4 : 0;
    const TensorRef outputs[] = {{DType::f32, four, memory_of(w_new, room)},
                                 {DType::f32, {}, sum.memory()}};
    return refusal([&] { s.run(inputs, outputs); });
  };
  EXPECT_EQ(run(nullptr), "accepted");
  EXPECT_EQ(w[3], 8.5f);
  EXPECT_EQ(sum[0], 6);
  EXPECT_EQ(run(w.data()), "accepted");
  EXPECT_EQ(w[3], 7);
  EXPECT_SAYS(run(elsewhere.data()), "overwrites the donated input 'w', but has different memory");
  // Rebinding the parameter also moves the result, without binding the output again.
  Memory<float> second(4);
  for (std::size_t i = 0; i < 4; ++i) second[i] = 1;
  EXPECT_EQ(run(nullptr), "accepted");
  s.bind_input(0, {DType::f32, four, second.memory()});
  s.run();
  EXPECT_EQ(second[2], 0);
  Memory<float> crooked(4, 4);
  s.bind_input(0, {DType::f32, four, crooked.memory()});
  EXPECT_SAYS(refusal([&] { s.run(); }), "must be a multiple of 64");
}

TEST(Session, ConvenienceCallLeavesDonatedInputsAsTheyAre) {
  Session s(load(update_plan()));
  const Array inputs[] = {Array::scalar(10, DType::f32), Array::scalar(2, DType::f32)};
  const Array shaped[] = {Array(DType::f32, {1}, inputs[0].storage()),
                          Array(DType::f32, {1}, inputs[1].storage())};
  const std::vector<Array> out = s.run(shaped);
  EXPECT_EQ(out[0].real(0), 9);
  EXPECT_EQ(out[1].real(0), 2);
  EXPECT_EQ(inputs[0].real(0), 10);
}

TEST(Session, EqualBitsEveryRunAndForEveryThreadCount) {
  const Array x = ramp(100'000);
  std::vector<std::byte> first;
  for (int threads : {1, 2, 4}) {
    Session s(load(scale_and_add()), {.threads = threads});
    for (int i = 0; i < 300; ++i) {
      const Array z = s.run(std::span(&x, 1))[0];
      if (first.empty()) first.assign(z.bytes().begin(), z.bytes().end());
      ASSERT_TRUE(std::ranges::equal(z.bytes(), first));
    }
  }
}

TEST(Session, SessionsOfOneExecutableRunAtOnce) {
  const auto executable = load(scale_and_add());
  const std::shared_ptr<ThreadPool> pool = make_thread_pool({.threads = 2});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      Session s(executable, t % 2 ? SessionOptions{.pool = pool} : SessionOptions{.threads = 2});
      const Array x = ramp(3000 + t);
      for (int i = 0; i < 50; ++i) {
        const Array z = s.run(std::span(&x, 1))[0];
        wrong += z.as<float>()[2999] != x.as<float>()[2999] * 2 + 1 + 4;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

class CountingAllocator final : public Allocator {
 public:
  DeviceMemory alloc(std::size_t bytes) override {
    now += bytes;
    peak = std::max(peak, now);
    return device_->alloc(bytes);
  }
  void free(DeviceMemory at, std::size_t bytes) noexcept override {
    now -= bytes;
    device_->free(at, bytes);
  }
  std::size_t now = 0, peak = 0;

 private:
  std::shared_ptr<Device> device_ = open_cpu_device();
};

TEST(Session, MemoryIsReportedBeforeItIsTaken) {
  const auto allocator = std::make_shared<CountingAllocator>();
  {
    Session s(load(scale_and_add()), {.threads = 3, .allocator = allocator});
    Memory<float> x(100'000), z(100'000);
    const Sizes dims = {100'000};
    s.bind_input(0, {DType::f32, dims, x.memory()});
    s.bind_output(0, {DType::f32, dims, z.memory()});
    const MemoryReport m = s.memory();
    EXPECT_EQ(allocator->peak, 0u);
    EXPECT_EQ(m.shared.weights, 16u);
    EXPECT_EQ(m.arena, 400'000u);
    EXPECT_EQ(m.scratch, 3 * 4096u);
    EXPECT_EQ(m.staging, 0u);
    s.run();
    EXPECT_EQ(allocator->peak, m.arena + m.scratch + m.staging);
    s.trim();
    EXPECT_EQ(allocator->now, m.scratch);
    s.run();
  }
  EXPECT_EQ(allocator->now, 0u);
}

TEST(Session, RefusesInTimeWhatNeedsTooMuchMemory) {
  const auto allocator = std::make_shared<CountingAllocator>();
  Session roomy(load(scale_and_add()), {.threads = 1});
  roomy.run(std::vector{ramp(1 << 20)});
  Session s(load(scale_and_add()), {.threads = 1, .allocator = allocator, .max_memory = 30'000});
  EXPECT_SAYS(refusal([&] { s.run(std::vector{ramp(1 << 20)}); }),
              cat("needs ", roomy.memory().peak(), " bytes of memory, but the limit is 30000"));
  EXPECT_EQ(allocator->peak, 0u);
  EXPECT_EQ(refusal([&] { s.run(std::vector{ramp(1000)}); }), "accepted");
}

TEST(Session, RefusesMoreThanTheMachineHasWithoutALimit) {
  const auto allocator = std::make_shared<CountingAllocator>();
  Plan p = scale_and_add();
  p.main().variants[0].devices[0].arena_bytes = p.main().variants[0].devices[0].arena_lower_bound =
      std::int64_t{1} << 50;
  Session s(load(std::move(p)), {.threads = 1, .allocator = allocator});
  EXPECT_SAYS(
      refusal([&] { s.run(std::vector{ramp(1000)}); }),
      cat("but the limit is ", default_memory_limit(), " (80 % of what this process can have)"));
  EXPECT_EQ(allocator->peak, 0u);
  EXPECT_GT(default_memory_limit(), std::int64_t{1} << 26);
  EXPECT_LT(default_memory_limit(), std::int64_t{1} << 50);
}

TEST(Session, TracesEveryStep) {
  std::vector<std::string> seen;
  Session s(load(scale_and_add()), {.trace = [&](const StepEvent& e) {
              EXPECT_LE(e.start, e.end);
              seen.push_back(e.group ? e.group->name : e.step.name);
            }});
  s.run(std::vector{ramp(10)});
  EXPECT_EQ(seen, (std::vector<std::string>{"scale", "add"}));
}

TEST(Session, StartsFromAPlanFile) {
  const auto path = std::filesystem::path(testing::TempDir()) / "start.hone";
  write_plan(path, scale_and_add());
  const auto executable = Executable::open(path, open_cpu_device());
  // The weight is used in place, in the mapped file.
  EXPECT_EQ(executable->device()->host_address(executable->weight(0, 0).at),
            executable->plan().weights[0].data.bytes().data());
  Session s(executable);
  const Array x = ramp(5000);
  expect_scaled_and_added(x, s.run(std::span(&x, 1))[0].as<float>());
}

TEST(Executable, WeightsThatAreNotAlignedAreCopied) {
  Plan p = scale_and_add();
  Memory<std::byte> crooked(16, 2);
  const float w[] = {1, 2, 3, 4};
  std::memcpy(crooked.data(), w, sizeof w);
  p.weights[0].data = Array(DType::f32, {4}, Storage(nullptr, {crooked.data(), 16}));
  Session s(load(p));
  const Array x = ramp(50);
  expect_scaled_and_added(x, s.run(std::span(&x, 1))[0].as<float>());
}

TEST(Executable, ViewsOutsideTheirBufferAreRefused) {
  const auto says = [](void (*spoil)(Variant&)) {
    Plan p = scale_and_add();
    spoil(p.main().variants[0]);
    return refusal([&] { Session(load(p)).run(std::vector{ramp(100)}); });
  };
  EXPECT_SAYS(says([](Variant& v) { v.steps[0].operands[1].dims = {n + 1}; }),
              "of a buffer of 400");
  EXPECT_SAYS(says([](Variant& v) { v.steps[0].operands[1].offset = -4; }), "of a buffer of 400");
  EXPECT_SAYS(says([](Variant& v) { v.steps[0].operands[1].strides = {-1}; }),
              "reaches bytes -396");
  EXPECT_SAYS(says([](Variant& v) { v.steps[0].operands[1].dims = {Dim(std::int64_t{1} << 40)}; }),
              "of a buffer");
  EXPECT_SAYS(says([](Variant& v) { v.buffers[0].bytes = n * 8; }), "needs 800 bytes, but has 400");
  EXPECT_SAYS(says([](Variant& v) { v.buffers[1].offset = 4; }), "does not fit an arena");
  EXPECT_SAYS(says([](Variant& v) { v.devices[0].arena_bytes = 64; }),
              "does not fit an arena of 64");
  EXPECT_SAYS(says([](Variant& v) { v.steps[0].chunks = Dim::symbol("other", 1, 2); }),
              "size 'other' is given by no input");
}

TEST(Prepare, FillsBuffersThatRunsRead) {
  Plan p = scale_and_add();
  Variant& v = p.main().variants[0];
  // The weight that the run reads is computed from another one: 2 w + 1.
  p.prepared = {{"packed", f32({4}), {}}};
  v.buffers.push_back({PlanBuffer::Kind::prepared, 0, 0, 16});
  v.prepare = {
      launch_of(0, {dense(2, DType::f32, {4}), dense(4, DType::f32, {4})}, {false, true}, {4})};
  v.steps[1].operands[1].buffer = 4;
  // If the compiler could not prepare the weights, load_plan() does.
  EXPECT_SAYS(refusal([&] { load(p); }), "load it with load_plan()");
  Session prepared(load_plan(std::make_shared<const Plan>(p), {open_cpu_device()}));
  EXPECT_EQ(prepared.run(std::vector{ramp(8)})[0].as<float>()[0], 0 * 2 + 1 + 3);
  const std::shared_ptr<ThreadPool> pool = make_thread_pool({.threads = 1});
  run_prepare(p, open_cpu_device(), pool);  // the arena's size is not known: n may be 0
  ASSERT_EQ(p.prepared[0].data.size(), 16u);
  const float* packed = reinterpret_cast<const float*>(p.prepared[0].data.bytes().data());
  EXPECT_EQ(packed[3], 9);
  const void* first = packed;
  run_prepare(p, open_cpu_device(), pool);  // already prepared, so nothing runs
  EXPECT_EQ(p.prepared[0].data.bytes().data(), first);
  Session s(load(p));
  EXPECT_EQ(s.run(std::vector{ramp(8)})[0].as<float>()[0], 0 * 2 + 1 + 3);
  EXPECT_EQ(s.memory().shared.prepared, 16u);
}

// A machine does not prepare weights for variants that it cannot run.
TEST(Prepare, LeavesOutVariantsOfOtherMachines) {
  Plan p = scale_and_add();
  p.prepared = {{"packed", f32({4}), {}}, {"packed for another machine", f32({4}), {}}};
  Variant& v = p.main().variants[0];
  v.buffers.push_back({PlanBuffer::Kind::prepared, 0, 0, 16});
  v.prepare = {
      launch_of(0, {dense(2, DType::f32, {4}), dense(4, DType::f32, {4})}, {false, true}, {4})};
  v.steps[1].operands[1].buffer = 4;
  Variant other = v;
  other.devices[0].target = "no-such-target";
  other.buffers[4].index = 1;
  p.main().variants.push_back(other);
  Session s(load_plan(std::make_shared<const Plan>(p), {open_cpu_device()}));
  EXPECT_EQ(s.run(std::vector{ramp(8)})[0].as<float>()[0], 0 * 2 + 1 + 3);
  p.main().variants.erase(p.main().variants.begin());
  run_prepare(p, open_cpu_device(), make_thread_pool({.threads = 1}));
  EXPECT_EQ(p.prepared[1].data.size(), 0u);
  EXPECT_SAYS(refusal([&] { load(p); }), "is compiled for no-such-target");
}

}  // namespace
}  // namespace hone
