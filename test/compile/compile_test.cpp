// The compiler on functions built in C++.
#include <pthread.h>
#include <sys/mman.h>

#include <ctime>

#include "base/sanitizer.h"
#include "compile/blame.h"
#include "compile/stats.h"
#include "ops/common.h"
#include "plan/plan_file.h"
#include "test/compile/models.h"

namespace hone {
namespace {

using namespace test;

Source built(const Function& f) { return {"built", {{{}, f}}, {}}; }

Array ramp(std::vector<std::int64_t> dims, double scale = 0.01) {
  Array a = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, scale * static_cast<double>(i % 97));
  return a;
}

int launches(const std::vector<Step>& steps) {
  int n = 0;
  for (const Step& s : steps)
    n += (s.kind == Step::Kind::launch) + launches(s.body) + launches(s.otherwise);
  return n;
}

Function sgd_step() {
  Function f;
  Value w = f.add_param(f32({64, 32}), "w", true), g = f.add_param(f32({64, 32}), "g");
  f.add_result(w - g * 0.1, "updated");
  f.add_result(ops::sqrt(ops::reduce_sum(g * g, {{"axes", Dims{0, 1}}})), "norm");
  return f;
}

TEST(Compile, UpdatesADonatedParameterInPlace) {
  EmptyCache cache;
  Plan compiled = compile(built(sgd_step()), {.strategy = "cpu"});
  fs::path file = cache.directory() / "sgd.hone";
  write_plan(file, compiled);
  for (bool from_file : {false, true}) {
    auto plan = std::make_shared<const Plan>(from_file ? read_plan(file) : compiled);
    ASSERT_EQ(plan->main().result_alias.at(0), 0);
    std::unique_ptr<Session> session = session_of(plan);
    Array w = ramp({64, 32}), g = ramp({64, 32}, 0.5);
    alignas(64) static float memory[64 * 32];
    alignas(64) static float gradient[64 * 32];
    alignas(64) static float norm[16];
    std::copy(w.as<float>().begin(), w.as<float>().end(), memory);
    std::copy(g.as<float>().begin(), g.as<float>().end(), gradient);
    const std::int64_t dims[] = {64, 32};
    session->bind_input(0, {DType::f32, dims, memory_of(memory, 64 * 32)});
    session->bind_input(1, {DType::f32, dims, memory_of(gradient, 64 * 32)});
    session->bind_output(0, {DType::f32, dims, memory_of(memory, 64 * 32)});
    session->bind_output(1, {DType::f32, {}, memory_of(norm, 1)});
    session->run();
    double squares = 0;
    for (int i = 0; i < 64 * 32; ++i) {
      ASSERT_NEAR(memory[i], w.real(i) - 0.1 * g.real(i), 1e-5);
      squares += g.real(i) * g.real(i);
    }
    EXPECT_NEAR(norm[0], std::sqrt(squares), 1e-3 * std::sqrt(squares));
  }
}

TEST(Compile, RowOperationsAndActivationsAreOneLaunch) {
  EmptyCache cache;
  const Shape shape{128, 768};
  auto count = [&](const std::function<Value(Function&)>& build) {
    Function f;
    f.add_result(build(f), "y");
    return launches(compile(built(f), {.strategy = "cpu"}).main().variants[0].steps);
  };
  EXPECT_EQ(1, count([&](Function& f) {
              return ops::softmax(f.add_param(f32(shape), "x"), {{"axis", 1}});
            }));
  EXPECT_EQ(1, count([&](Function& f) {
              Value x = f.add_param(f32(shape), "x"), scale = f.add_param(f32({768}), "scale"),
                    bias = f.add_param(f32({768}), "bias");
              return ops::layer_norm(std::vector<Value>{x, scale, bias},
                                     {{"axis", 1}, {"epsilon", 1e-5}});
            }));
  EXPECT_EQ(1, count([&](Function& f) {
              Value x = f.add_param(f32(shape), "x"), w = f.add_param(f32({768}), "w"),
                    b = f.add_param(f32({768}), "b");
              return ops::gelu(x * broadcast_to(w, shape) + broadcast_to(b, shape));
            }));
}

TEST(Compile, AThousandRunsGiveEqualBits) {
  EmptyCache cache;
  Function f;
  Value x = f.add_param(f32({33, 100}), "x"), w = f.add_param(f32({100, 65}), "w");
  f.add_result(ops::softmax(ops::matmul(x, w), {{"axis", 1}}), "y");
  std::unique_ptr<Session> session =
      session_of(std::make_shared<const Plan>(compile(built(f), {.strategy = "cpu"})), 2);
  std::vector<Array> inputs = {ramp({33, 100}), ramp({100, 65}, 0.001)};
  std::vector<Array> first = session->run(inputs);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(session->run(inputs), first) << i;
}

// The code of one step must not grow with the number of operands: 1,000 took 52 s to compile.
TEST(Compile, ManyOperandsOfAConcatAreJoinedInGroups) {
  for (int count : {1000, 5000}) {
    EmptyCache cache;
    Function f;
    Values parts;
    std::vector<Array> inputs;
    for (int i = 0; i < count; ++i) {
      parts.push_back(f.add_param(f32({1}), cat("x", i)));
      inputs.push_back(Array::of<float>(DType::f32, {1}, std::vector{static_cast<float>(i)}));
    }
    f.add_result(concat_values(parts, 0), "y");
    const std::clock_t start = std::clock();
    const auto plan = std::make_shared<const Plan>(compile(built(f), {.strategy = "cpu"}));
    EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, count / 50) << count;
    const Array y = session_of(plan)->run(inputs)[0];
    ASSERT_EQ(y.dims(), std::vector<std::int64_t>{count});
    for (int i = 0; i < count; ++i) ASSERT_EQ(y.real(i), i);
  }
}

// Nothing recurses over the length of a function: not the compiler, the plan file reader or a run.
TEST(Compile, TwentyThousandLaunchesNeedLittleStack) {
  EmptyCache cache;
  std::function<void()> work = [&] {
    Function f;
    Value x = f.add_param(f32({4}), "x");
    Value y = x;
    for (int i = 0; i < 10'000; ++i) y = ops::maximum(ops::neg(y), x);
    f.add_result(y, "y");
    CompileOptions options;
    options.strategy = "cpu";
    options.one_op_groups = true;
    options.verification = Verification::none;
    const fs::path file = cache.directory() / "long.hone";
    write_plan(file, compile(built(f), options));
    auto plan = std::make_shared<const Plan>(read_plan(file));
    EXPECT_GE(launches(plan->main().variants[0].steps), 20'000);
    const Array input = ramp({4}, 1);  // 0, 1, 2, 3: the maximum of each number and its negative
    EXPECT_EQ(session_of(plan)->run(std::vector{input})[0], input);
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  // Instrumented, unoptimized code needs four times as much.
  pthread_attr_setstacksize(&attributes,
                            (with_address_sanitizer || with_thread_sanitizer ? 2048U : 512U) << 10);
  pthread_t thread;
  const auto go = [](void* f) -> void* {
    (*static_cast<std::function<void()>*>(f))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, go, &work), 0);
  pthread_join(thread, nullptr);
}

// Weights are prepared at the minimum sizes, which no run may have: the arena of this function has
// a negative size there.
TEST(Compile, PreparesWeightsWhereTheLeastSizesMakeNoSense) {
  EmptyCache cache;
  const Dim n = Dim::symbol("n", 1, 4096);
  Function f;
  Value x = f.add_param(f32({n}), "x"), other = f.add_param(f32({128, 256}), "other");
  Value rest =
      ops::slice(x, {{"starts", Dims{400}}, {"steps", Dims{1}}, {"sizes", Dims{n - Dim(400)}}});
  Value weights = constant(f.graph(), ramp({128, 256}));
  f.add_result(ops::tanh(ops::exp(ops::neg(rest))), "y");
  f.add_result(other + ops::tanh(weights), "z");
  CompileOptions options;
  options.strategy = "cpu";
  options.one_op_groups = true;
  options.verification = Verification::none;
  const Source source{"least", {{{{Guard::Kind::greater, n, 400}}, f}}, {}};
  const auto plan = std::make_shared<const Plan>(compile(source, options));
  ASSERT_FALSE(plan->prepared.empty());
  const Dim arena = plan->main().variants[0].devices[0].arena_bytes;
  EXPECT_LT(arena.eval([](std::string_view) { return 1; }), 0) << arena;
  const std::vector<Array> inputs = {ramp({500}), ramp({128, 256})};
  const std::vector<Array> got = session_of(plan)->run(inputs);
  const std::vector<Array> expected = evaluate(f, inputs);
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(within(got[i], expected[i], 1e-6, 1e-6)) << i;
}

// More elements than 32 bits can count. Untouched pages take no memory.
TEST(Compile, ElementsBehindTheFirst2To31AreReached) {
  constexpr std::int64_t n = (std::int64_t{1} << 31) + 17;
  EmptyCache cache;
  Function f;
  const Value x = f.add_param(Type(DType::i8, {n}), "x"),
              places = f.add_param(Type(DType::i64, {2}), "places");
  f.add_result(slice_axis(x, 0, n - 3, 3), "end");
  f.add_result(slice_axis(x, 0, 16, 2, n - 17), "far");
  f.add_result(ops::gather(Values{x, places}, {{"axis", 0}}), "taken");
  f.add_result(reduce_axes(ops::reduce_min, reshape_to(x, {n}), {0}), "least");
  f.add_result(ops::argmax(x, {{"axis", 0}, {"dtype", DType::i64}}), "place");
  CompileOptions options;
  options.strategy = "cpu";
  options.verification = Verification::none;
  const auto plan = std::make_shared<const Plan>(compile(built(f), options));
  void* memory = ::mmap(nullptr, n, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* elements = static_cast<std::int8_t*>(memory);
  elements[n - 1] = -5;
  elements[n - 2] = 7;
  elements[16] = 3;
  const std::int64_t wanted[] = {n - 1, -2};
  const Array inputs[] = {
      Array(DType::i8, {n},
            Storage({}, {static_cast<std::byte*>(memory), static_cast<std::size_t>(n)})),
      Array::of<std::int64_t>(DType::i64, {2}, wanted)};
  const std::vector<Array> got = session_of(plan, 2)->run(inputs);
  const auto numbers = [](const Array& a) {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < a.count(); ++i) out.push_back(a.integer(i));
    return out;
  };
  using Numbers = std::vector<std::int64_t>;
  EXPECT_EQ(numbers(got[0]), (Numbers{0, 7, -5}));
  EXPECT_EQ(numbers(got[1]), (Numbers{3, -5}));
  EXPECT_EQ(numbers(got[2]), (Numbers{-5, 7}));
  EXPECT_EQ(numbers(got[3]), (Numbers{-5}));
  EXPECT_EQ(numbers(got[4]), (Numbers{n - 2}));
  ::munmap(memory, n);
}

TEST(Compile, UnknownPassesStrategiesAndTargetsAreRefusedWithWhatThereIs) {
  Source s = built(sgd_step());
  auto message = [&](const CompileOptions& options) -> std::string {
    try {
      compile(s, options);
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message({.strategy = "fast"}).find("cpu, onednn, multi or auto"), std::string::npos);
  CompileOptions pass{.strategy = "cpu"};
  pass.passes.off = {"simplfy"};
  EXPECT_NE(message(pass).find("simplify"), std::string::npos);
  pass.passes.off = {"codes"};
  EXPECT_NE(message(pass).find("pass 'codes' cannot be left out"), std::string::npos);
  EXPECT_NE(message({.strategy = "cpu", .targets = {"sparc"}}).find("sparc"), std::string::npos);
}

TEST(Compile, EveryPassMayBeLeftOut) {
  EmptyCache cache;
  Function f;
  Value x = f.add_param(f32({2, 3, 10, 12}), "x"), w = f.add_param(f32({8, 3, 3, 3}), "w");
  Value y = ops::conv(std::vector<Value>{x, w}, {{"strides", Dims{1, 1}},
                                                 {"dilations", Dims{1, 1}},
                                                 {"pads_low", Dims{1, 1}},
                                                 {"pads_high", Dims{1, 1}},
                                                 {"groups", 1},
                                                 {"channels_last", 0}});
  f.add_result(ops::softmax(ops::relu(y), {{"axis", 1}}), "y");
  std::vector<Array> inputs = {ramp({2, 3, 10, 12}), ramp({8, 3, 3, 3}, 0.003)};
  std::vector<Array> expected = evaluate(f, inputs);
  for (const Pass& p : pipeline()) {
    if (p.is_needed) continue;
    CompileOptions options{.strategy = "cpu"};
    options.passes.off = {std::string(p.name)};
    options.passes.verify_each = true;
    auto plan = std::make_shared<const Plan>(compile(built(f), options));
    expect_close(session_of(plan)->run(inputs), expected, "without " + std::string(p.name));
  }
}

TEST(Compile, FindsNoDifferenceWhereThereIsNone) {
  EmptyCache cache;
  Function f;
  Value x = f.add_param(f32({5, 7}), "x");
  f.add_result(ops::tanh(ops::exp(x) * 0.5), "y");
  EXPECT_EQ(first_difference(built(f), {.strategy = "cpu"}, {ramp({5, 7})}), std::nullopt);
}

TEST(Stats, IntervalsHoldTheMedian) {
  std::vector<double> samples;
  for (int i = 0; i < 101; ++i) samples.push_back(i);
  Interval all = median_interval(samples);
  EXPECT_EQ(all.median, 50);
  EXPECT_NEAR(all.low, 40, 1);
  EXPECT_NEAR(all.high, 60, 1);
  std::vector<double> twice = samples;
  for (double& x : twice) x = 2 * (x + 1);
  for (double& x : samples) x += 1;
  EXPECT_EQ(paired_ratio(twice, samples).median, 2);
}

}  // namespace
}  // namespace hone
