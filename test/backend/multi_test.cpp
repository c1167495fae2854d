// The strategy `multi` over the CPU and two far devices, which are slowed down where a test says
// so.
#include "compile/optimize.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "plan/plan_file.h"
#include "ref/compare.h"
#include "test/backend/conformance.h"
#include "test/far/far.h"

namespace hone::test {
namespace {

Array wave(std::vector<std::int64_t> dims, int step) {
  Array a = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i)
    a.set_real(i, static_cast<double>((i * step) % 13) / 8 - 0.5);
  return a;
}

// Products of the rows of x with `count` matrices, each a group of its own.
Function branches(const Dim& rows, int count) {
  Function f;
  const Value x = f.add_param(f32({rows, 4}), "x");
  for (int i = 0; i < count; ++i)
    f.add_result(ops::matmul(x, constant(f.graph(), wave({4, 4}, 3 + i))), cat("y", i));
  return f;
}

// Such products as a chain.
Function chain(const Dim& rows, int count) {
  Function f;
  Value x = f.add_param(f32({rows, 4}), "x");
  for (int i = 0; i < count; ++i) x = ops::matmul(x, constant(f.graph(), wave({4, 4}, 3 + i)));
  f.add_result(x, "y");
  return f;
}

CompileOptions multi(bool measure = false) {
  CompileOptions o{.strategy = "multi", .measure = measure, .budget = 6, .cache = false};
  o.threads = 1;
  return o;
}

Source source(Function f) { return {"multi", {{{}, std::move(f)}}, {}}; }

void expect_as_reference(const Function& f, const Plan& plan, const std::vector<Array>& inputs) {
  const auto shared = std::make_shared<const Plan>(plan);
  Session s(Executable::load(shared, open_devices(plan)), {.threads = 1});
  s.run(inputs);  // memory of an earlier run must not affect the results
  expect_accepted(s.run(inputs), f, inputs);
}

// The compared alternatives, for messages.
std::string text_of(const CompileReport& r) {
  std::string out;
  for (const WayReport& w : r.ways) {
    out += cat("\n", w.ms, " ms", w.is_chosen ? ", chosen:" : ":", " ", w.alone);
    for (std::uint16_t place : w.places) out += cat(" ", place);
  }
  return out;
}

class Paced {
 public:
  explicit Paced(FarPace pace) { set_far_pace(std::move(pace)); }
  ~Paced() { set_far_pace({}); }
  Paced(const Paced&) = delete;
};

TEST(Multi, ComputesOnSeveralDevicesWhatTheReferenceDoes) {
  for (const Function& f : {branches(3, 6), chain(3, 6)}) {
    CompileReport report;
    const Plan plan = compile(source(f), multi(), &report);
    EXPECT_EQ(plan.strategy, "multi");
    EXPECT_FALSE(plan.measured);
    EXPECT_GT(plan.main().variants[0].devices.size(), 1u);
    EXPECT_EQ(report.whole, 3) << "the plans of both kinds of devices, and the joined one";
    EXPECT_EQ(std::ranges::count(report.ways, true, &WayReport::is_chosen), 1);
    expect_as_reference(f, plan, {wave({3, 4}, 5)});
  }
}

TEST(Multi, ServesAllSizesOfASymbol) {
  const Function f = chain(Dim::symbol("n", 0, 100), 3);
  const Plan plan = compile(source(f), multi());
  for (std::int64_t n : {1, 50, 0, 100, 7}) expect_as_reference(f, plan, {wave({n, 4}, 5)});
}

// A product of few rows is faster with another candidate than one of many, so a plan of one device
// distinguishes them. The joined plan must not.
TEST(Multi, ServesAllSizesWhereTimesDecide) {
  Function f;
  const Value x = f.add_param(f32({Dim::symbol("n", 0, 4096), 64}), "x");
  f.add_result(ops::matmul(x, constant(f.graph(), wave({64, 64}, 3))), "y");
  CompileOptions options = multi(true);
  for (int again = 0; again < 5; ++again) {  // times differ
    const Plan plan = compile(source(f), options);
    EXPECT_EQ(plan.strategy, "multi");
    for (std::int64_t n : {1, 300, 0, 4096}) expect_as_reference(f, plan, {wave({n, 64}, 5)});
  }
  options.strategy = "auto";
  expect_as_reference(f, compile(source(f), options), {wave({7, 64}, 5)});
}

TEST(Multi, APlanOfSeveralDevicesSurvivesAFile) {
  const Function f = branches(3, 4);
  const auto path = std::filesystem::path(testing::TempDir()) / "multi.hone";
  write_plan(path, compile(source(f), multi()));
  const Plan read = read_plan(path);
  EXPECT_GT(read.main().variants[0].devices.size(), 1u);
  expect_as_reference(f, read, {wave({3, 4}, 5)});
}

TEST(Multi, TakesOfTheJoinedPlansWhatItUses) {
  const Plan plan = compile(source(branches(3, 6)), multi());
  std::vector<bool> used(plan.kernels.size(), false);
  for_each_step(plan.main().variants[0].steps, [&](const Step& s) {
    if (s.kind == Step::Kind::launch) used.at(s.index) = true;
  });
  EXPECT_EQ(std::ranges::count(used, false), 0);
}

// Repeats the launches on the first device many times.
void slow_down_first(Plan& plan) {
  Variant& v = plan.main().variants[0];
  std::vector<Step> all;
  for (const Step& s : v.steps)
    all.insert(all.end(), s.kind == Step::Kind::launch && s.device == 0 ? 2'000 : 1, s);
  v.steps = std::move(all);
}

// Six equal groups finish first on three devices if the first is slow and the others have an engine
// each, and on two if the first is fast and the others share an engine. The alternative takes twice
// as long in both cases. Predictions are the same. A busy machine may delay any launch, so the test
// retries.
TEST(Multi, TheChoiceFollowsTheTime) {
  const Function f = branches(2048, 6);
  for (const bool is_shared : {false, true}) {
    const Paced pace(
        {std::chrono::milliseconds(6), is_shared ? std::make_shared<std::mutex>() : nullptr});
    CompileOptions options = multi(true);
    options.verification = Verification::none;
    if (!is_shared) options.on_plan = slow_down_first;
    const std::size_t devices = is_shared ? 2 : 3;
    CompileReport report;
    Plan plan;
    for (int attempt = 0; attempt < 12; ++attempt) {
      report = {};
      plan = compile(source(f), options, &report);
      if (plan.main().variants[0].devices.size() == devices) break;
    }
    EXPECT_TRUE(plan.measured);
    EXPECT_EQ(plan.main().variants[0].devices.size(), devices) << text_of(report);
    ASSERT_GE(report.ways.size(), 2u);
    const auto chosen = std::ranges::find(report.ways, true, &WayReport::is_chosen);
    ASSERT_NE(chosen, report.ways.end());
    for (const WayReport& w : report.ways) {
      EXPECT_GT(w.ms, 0);
      EXPECT_LE(chosen->ms, w.ms * 1.1) << text_of(report);
    }
    expect_as_reference(f, plan, {wave({2048, 4}, 5)});
  }
}

TEST(Multi, AutoStaysOnOneDeviceWhereOthersAreSlower) {
  const Paced pace({std::chrono::milliseconds(2)});
  const Function f = branches(3, 4);
  CompileOptions options = multi(true);
  options.strategy = "auto";
  CompileReport report;
  const Plan plan = compile(source(f), options, &report);
  EXPECT_EQ(plan.main().variants[0].devices.size(), 1u);
  EXPECT_GE(report.ways.size(), 2u) << "others were timed";
  EXPECT_TRUE(report.ways[0].places.empty() && report.ways[0].is_chosen);
  expect_as_reference(f, plan, {wave({3, 4}, 5)});
}

// Slows down the CPU: it runs every launch thousands of times, with enough rows that the launch
// overhead is small.
constexpr std::int64_t slow_rows = 2'048;
void slow_down_processor(Plan& plan) {
  Variant& v = plan.main().variants[0];
  if (v.devices.size() > 1 || v.devices[0].name != "cpu") return;
  std::vector<Step> all;
  for (const Step& s : v.steps) all.insert(all.end(), 8'000, s);
  v.steps = std::move(all);
}

CompileOptions auto_without_processor() {
  CompileOptions options = multi(true);
  options.strategy = "auto";
  options.verification = Verification::none;
  options.on_plan = slow_down_processor;
  return options;
}

// Measures the time of the whole function on the slowed-down CPU.
std::chrono::microseconds time_on_processor(const Function& f) {
  CompileOptions options = multi();
  options.strategy = "cpu";
  options.verification = Verification::none;
  options.on_plan = slow_down_processor;
  const auto plan = std::make_shared<const Plan>(compile(source(f), options));
  Session s(Executable::load(plan, open_devices(*plan)), {.threads = 1});
  const std::vector<Array> inputs = {wave({slow_rows, 4}, 5)};
  s.run(inputs);
  const auto start = std::chrono::steady_clock::now();
  s.run(inputs);
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() -
                                                               start);
}

// One far device takes about three quarters of the CPU's time; two of them and the CPU, half of it.
TEST(Multi, AutoTakesSeveralDevicesWhereTheyAreFaster) {
  constexpr int groups = 4;
  const Function f = branches(slow_rows, groups);
  CompileReport report;
  Plan plan;
  for (int attempt = 0; attempt < 12; ++attempt) {
    const Paced pace({time_on_processor(f) * 2 / 3 / groups});
    report = {};
    plan = compile(source(f), auto_without_processor(), &report);
    if (plan.main().variants[0].devices.size() > 1) break;
  }
  EXPECT_EQ(plan.strategy, "auto");
  EXPECT_GT(plan.main().variants[0].devices.size(), 1u) << text_of(report);
  EXPECT_FALSE(report.ways.at(0).is_chosen || report.ways.at(1).is_chosen) << text_of(report);
  expect_as_reference(f, plan, {wave({slow_rows, 4}, 5)});
}

// A sequential chain gains nothing from a second device, so all of it stays on the fastest one.
TEST(Multi, AutoStaysOnTheFastestDevice) {
  const Paced pace({std::chrono::milliseconds(2)});
  const Function f = chain(slow_rows, 4);
  CompileReport report;
  const Plan plan = compile(source(f), auto_without_processor(), &report);
  ASSERT_EQ(plan.main().variants[0].devices.size(), 1u) << text_of(report);
  EXPECT_EQ(plan.main().variants[0].devices[0].name, "far") << text_of(report);
  ASSERT_GE(report.ways.size(), 2u);
  EXPECT_EQ(report.ways[1].alone, "far");
  EXPECT_TRUE(report.ways[1].is_chosen) << text_of(report);
  EXPECT_EQ(report.kernels, std::ssize(plan.kernels));
  expect_as_reference(f, plan, {wave({slow_rows, 4}, 5)});
}

TEST(Multi, HasARowOfItsOwnInOptimize) {
  const Function f = chain(3, 3);
  OptimizeRequest request;
  request.compile = multi();
  request.strategies = {"far", "multi", "auto"};
  request.rounds = 3;
  request.budget = 3;
  request.profile = true;
  const Optimized out = optimize(source(f), request);
  for (const StrategyRecord& r : out.plan.main().strategies) {
    EXPECT_EQ(r.failure, "");
    EXPECT_GT(r.ms, 0) << r.name;
  }
  ASSERT_EQ(out.compiled.size(), 3u);
  EXPECT_FALSE(out.compiled[1].ways.empty());
  EXPECT_TRUE(out.compiled[2].ways.empty()) << "auto leaves several devices to multi";
}

// If times do not decide, each named device gets an equal number of groups.
TEST(Multi, UsesTheDevicesThatAreNamed) {
  const std::vector<std::vector<std::string>> all = {
      {"far", "far"}, {"far"}, {"cpu", "far"}, {"far", "cpu", "far"}};
  for (const bool measures : {false, true})
    for (const std::vector<std::string>& named : all) {
      for (const Function& f : {branches(3, 6), chain(3, 6)}) {
        CompileOptions options = multi(measures);
        options.devices = named;
        const Plan plan = compile(source(f), options);
        const Variant& v = plan.main().variants[0];
        std::vector<int> launches(v.devices.size(), 0);
        for (const Step& s : v.steps)
          if (s.kind == Step::Kind::launch) ++launches.at(s.device);
        ASSERT_EQ(v.devices.size(), 1 + std::ranges::count(named, "far"));
        EXPECT_EQ(launches[0] > 0, std::ranges::count(named, "cpu") > 0);
        for (std::size_t d = 1; d < launches.size(); ++d) EXPECT_GT(launches[d], 0) << d;
        expect_as_reference(f, plan, {wave({3, 4}, 5)});
      }
    }
}

TEST(Multi, IsRefusedWithAReason) {
  Function f;
  f.add_result(reshape_to(f.add_param(f32({4, 3}), "x"), {3, 4}), "y");
  EXPECT_NE(refusal([&] { compile(source(f), multi()); }).find("no part of it can be computed"),
            std::string::npos);
  CompileOptions options = multi();
  options.backend = &far_backend();
  EXPECT_NE(refusal([&] { compile(source(chain(3, 2)), options); }).find("omit the backend"),
            std::string::npos);
  options = multi();
  options.targets = {"far-1"};
  EXPECT_NE(refusal([&] { compile(source(chain(3, 2)), options); }).find("the targets"),
            std::string::npos);
  options = multi();
  options.devices = {"far", "far", "far"};
  EXPECT_EQ(refusal([&] {
              compile(source(chain(3, 4)), options);
            }).find("device 'far' is named 3 times, but this machine has 2; it has: "),
            0u);
  options.devices = {"far", "cpu", "far"};
  EXPECT_EQ(refusal([&] { compile(source(chain(3, 2)), options); }),
            "multi: has too few parts for 3 devices; name fewer, or compile with --one-op-groups");
}

}  // namespace
}  // namespace hone::test
