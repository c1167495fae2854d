// What targets propose and refuse, what is measured, and which measurements are remembered.
#include <thread>

#include "backend/backend.h"
#include "compile/build_id.h"
#include "compile/group_times.h"
#include "compile/optimize.h"
#include "compile/stats.h"
#include "ops/common.h"
#include "test/compile/models.h"
#include "verify/sample.h"

namespace hone {
namespace {

using namespace test;

// The smallest possible new backend: it renders plain loop nests and refuses everything else.
class NestTarget final : public Target {
 public:
  NestTarget(std::unique_ptr<Target> good, bool refuses_early)
      : good_(std::move(good)), refuses_early_(refuses_early) {}
  const TargetInfo& info() const override { return good_->info(); }
  std::string_view version() const override { return "nests only"; }
  Listing list(const CompileJob& job) const override { return good_->list(job); }

  std::vector<Proposal> candidates(const GroupSpec& spec) const override {
    std::vector<Proposal> out = Target::candidates(spec);
    if (refuses_early_)
      for (Proposal& p : out)
        if (p.candidate.name != "nest") p = {{.name = p.candidate.name}, "", "plain nests only"};
    return out;
  }
  std::vector<Binary> compile(std::span<const CompileJob> jobs, ThreadPool& pool) const override {
    for (const CompileJob& job : jobs)
      if (!job.kernel->tiles.empty())
        throw UserError("kernel '", job.kernel->name, "' is no plain loop nest");
    return good_->compile(jobs, pool);
  }

 private:
  std::unique_ptr<Target> good_;
  bool refuses_early_;
};

template <bool refuses_early>
std::unique_ptr<Target> nest_target(std::string_view name) {
  return std::make_unique<NestTarget>(default_backend().target(name), refuses_early);
}

Function matmul_softmax() {
  Function f;
  Value x = f.add_param(f32({33, 70}), "x"), w = f.add_param(f32({70, 65}), "w");
  f.add_result(ops::softmax(ops::matmul(x, w), {{"axis", 1}}), "y");
  return f;
}

Source source_with(const Function& f) { return {"built", {{{}, f}}, {}}; }

std::vector<const CandidateRecord*> refused(const Plan& plan) {
  std::vector<const CandidateRecord*> out;
  for (const GroupRecord& g : plan.main().variants[0].groups)
    for (const CandidateRecord& c : g.candidates())
      if (!c.refused.empty()) out.push_back(&c);
  return out;
}

void expect_runs_in_nests(std::unique_ptr<Target> (*target)(std::string_view),
                          const std::string& reason) {
  EmptyCache cache;
  Backend b = default_backend();
  b.target = target;
  const Function f = matmul_softmax();
  for (Verification level : {Verification::none, Verification::kernels}) {
    const Plan plan = compile(
        source_with(f), {.strategy = std::string(b.name), .backend = &b, .verification = level});
    bool has_nest = false;
    for (const GroupRecord& g : plan.main().variants[0].groups) has_nest |= g.chosen == "nest";
    EXPECT_TRUE(has_nest);
    ASSERT_FALSE(refused(plan).empty());
    EXPECT_NE(refused(plan)[0]->refused.find(reason), std::string::npos)
        << refused(plan)[0]->refused;
    const std::vector<Array> inputs = {sample_array(f32({33, 70}), {}, Fill::random, 1),
                                       sample_array(f32({70, 65}), {}, Fill::random, 2)};
    const std::vector<Array> got = session_of(std::make_shared<const Plan>(plan))->run(inputs);
    expect_close(got, evaluate(f, inputs), reason);
  }
}

TEST(Targets, ThatProposeNothingButNestsRunAModel) {
  expect_runs_in_nests(nest_target<true>, "plain nests only");
}

TEST(Targets, ThatRefuseToRenderACandidateAreAskedForTheNext) {
  expect_runs_in_nests(nest_target<false>, "is no plain loop nest");
}

TEST(Strategies, ComeFromTheListOfBackends) {
  const std::vector<std::string_view> all = strategies();
  EXPECT_EQ(all.front(), "ref");
  EXPECT_EQ(all.back(), "auto");
  for (const Backend* b : backends()) {
    EXPECT_EQ(std::ranges::count(all, b->name), has_device(*b) ? 1 : 0) << b->name;
    for (std::string_view library : b->libraries) {
      EXPECT_EQ(std::ranges::count(all, library), has_device(*b) ? 1 : 0) << library;
      EXPECT_TRUE(names_library(library));
    }
  }
  EXPECT_FALSE(names_library(default_backend().name));
}

TEST(Times, ACandidateThatIsThreeTimesSlowerRunsTwiceAtMost) {
  using std::chrono::milliseconds;
  int fast = 0, slow = 0, late = 0;
  const std::function<void()> candidates[] = {
      [&] { ++fast, std::this_thread::sleep_for(milliseconds(2)); },
      [&] { ++slow, std::this_thread::sleep_for(milliseconds(160)); },
      [&] { ++late, std::this_thread::sleep_for(milliseconds(50)); }};
  const auto times =
      time_interleaved(candidates, {.rounds = 8, .least_sample_ms = 0, .drop_above = 3});
  EXPECT_EQ(times[0].size(), 8u);
  EXPECT_EQ(slow, 1);
  EXPECT_LE(late, 2);
  EXPECT_EQ(times[1].size(), 1u);
  EXPECT_TRUE(is_clearly_faster(times[0], times[1]));
  EXPECT_FALSE(is_clearly_faster(times[1], times[0]));
}

// A first run may be slow because a library is loaded and warmed up, or because inputs are copied
// to a device.
TEST(Times, ASlowFirstRunPutsNoCandidateOut) {
  using std::chrono::milliseconds;
  int first = 0, second = 0, third = 0;
  const std::function<void()> candidates[] = {
      [&] { std::this_thread::sleep_for(milliseconds(first++ == 0 ? 150 : 8)); },
      [&] { std::this_thread::sleep_for(milliseconds(second++ == 0 ? 200 : 1)); },
      [&] { std::this_thread::sleep_for(milliseconds(third++ < 2 ? 90 : 1)); }};
  const auto times =
      time_interleaved(candidates, {.rounds = 8, .least_sample_ms = 0, .drop_above = 3});
  EXPECT_EQ(times[1].size(), 8u) << "as much longer as the first candidate's";
  EXPECT_TRUE(is_clearly_faster(times[1], times[0]));
  EXPECT_LE(third, 3) << "two slow runs agree";
}

TEST(Times, AComparisonEndsWhenItIsClear) {
  using std::chrono::milliseconds;
  int runs = 0;
  const std::function<void()> candidates[] = {
      [&] { ++runs, std::this_thread::sleep_for(milliseconds(20)); },
      [&] { std::this_thread::sleep_for(milliseconds(10)); }};
  time_interleaved(candidates, {.rounds = 100, .least_sample_ms = 0, .stops_when_clear = true});
  EXPECT_LT(runs, 20);
}

Plan measured(const Source& source, std::shared_ptr<CompileStore> store, CompileReport& report,
              double budget = 5) {
  return compile(source, {.measure = true, .budget = budget, .threads = 1, .store = store},
                 &report);
}

TEST(Times, AreRememberedBetweenCompilations) {
  EmptyCache cache;
  const Source source = source_with(matmul_softmax());
  CompileReport first, second;
  const Plan a = measured(source, nullptr, first), b = measured(source, nullptr, second);
  EXPECT_GT(first.measure_ms, 0);
  EXPECT_EQ(second.measure_ms, 0);
  ASSERT_EQ(a.main().variants[0].groups.size(), b.main().variants[0].groups.size());
  for (std::size_t i = 0; i < a.main().variants[0].groups.size(); ++i) {
    const GroupRecord &x = a.main().variants[0].groups[i], &y = b.main().variants[0].groups[i];
    EXPECT_EQ(x.chosen, y.chosen);
    if (x.reason == "measured") {
      EXPECT_EQ(y.reason, "measured before");
    }
  }
  // The winner is also chosen when a compilation does not measure.
  const Plan c = compile(source, {.threads = 1});
  EXPECT_EQ(c.main().variants[0].groups[0].chosen, a.main().variants[0].groups[0].chosen);
  // Times measured with another number of threads are not used.
  EXPECT_EQ(compile(source, {.threads = 2}).main().variants[0].groups[0].reason, "predicted");
}

TEST(Times, ABrokenEntryIsMeasuredAgain) {
  EmptyCache cache;
  const Source source = source_with(matmul_softmax());
  CompileReport first, second;
  measured(source, nullptr, first);
  int entries = 0;
  for (const auto& entry : fs::directory_iterator(cache.directory() / "times")) {
    fs::resize_file(entry.path(), fs::file_size(entry.path()) - 1);
    ++entries;
  }
  EXPECT_GT(entries, 0);
  measured(source, nullptr, second);
  EXPECT_GT(second.measure_ms, 0);
}

TEST(Times, NothingIsMeasuredWithoutTime) {
  EmptyCache cache;
  CompileReport report;
  const Plan plan = measured(source_with(matmul_softmax()), nullptr, report, 0);
  for (const GroupRecord& g : plan.main().variants[0].groups) {
    EXPECT_NE(g.reason, "measured");
    for (const CandidateRecord& c : g.candidates()) EXPECT_LT(c.ms, 0);
  }
}

TEST(Strategies, ShareWhatTheyLearn) {
  EmptyCache cache;
  auto store = std::make_shared<CompileStore>(false);
  const Source source = source_with(matmul_softmax());
  CompileReport first, second;
  const std::string kernels(default_backend().name);
  compile(source, {.strategy = kernels, .cache = false, .store = store}, &first);
  compile(source, {.cache = false, .store = store}, &second);
  EXPECT_GT(first.compiled, 0);
  EXPECT_EQ(second.compiled, 0);
  EXPECT_EQ(second.verified, 0);
}

// Proposes plain nests; one form is the builder's fast kernel.
class TunableTarget final : public Target {
 public:
  explicit TunableTarget(std::unique_ptr<Target> good) : good_(std::move(good)) {}
  const TargetInfo& info() const override { return good_->info(); }
  std::string_view version() const override { return "tunable"; }
  Listing list(const CompileJob& job) const override { return good_->list(job); }
  std::vector<Proposal> candidates(const GroupSpec& spec) const override {
    std::vector<Proposal> out;
    for (Proposal& p : Target::candidates(spec))
      if (p.candidate.name == "nest") out.push_back(p);
    return out;
  }
  std::vector<Tuning> space(const GroupSpec&, std::string_view candidate) const override {
    EXPECT_EQ(candidate, "nest");
    return {{{"form", 7}}, {{"form", 1}}};
  }
  std::optional<Candidate> tuned(const GroupSpec& spec, std::string_view,
                                 const Tuning& t) const override {
    if (value_or(t, "form", 0) == 1) return Target::candidates(spec)[0].candidate;
    return std::nullopt;
  }
  std::vector<Binary> compile(std::span<const CompileJob> jobs, ThreadPool& pool) const override {
    return good_->compile(jobs, pool);
  }

 private:
  std::unique_ptr<Target> good_;
};

// A form replaces the default only if it is clearly faster, which a busy machine may hide, so try
// up to ten times.
TEST(Tuning, TheFastestFormIsKept) {
  std::optional<EmptyCache> cache(std::in_place);
  Backend b = default_backend();
  b.target = [](std::string_view name) -> std::unique_ptr<Target> {
    return std::make_unique<TunableTarget>(default_backend().target(name));
  };
  Function f;
  Value x = f.add_param(f32({192, 192}), "x"), w = f.add_param(f32({192, 192}), "w");
  f.add_result(ops::matmul(x, w), "y");
  const auto chosen = [&](bool measure) {
    const Plan plan =
        compile(source_with(f),
                {.backend = &b, .measure = measure, .tune = measure, .budget = 10, .threads = 1});
    return plan.main().variants[0].groups[0].chosen;
  };
  EXPECT_EQ(chosen(false), "nest");
  for (int attempt = 0; attempt < 10 && chosen(true) != "nest form=1"; ++attempt) {
    cache.reset();
    cache.emplace();
  }
  EXPECT_EQ(chosen(false), "nest form=1");
}

TEST(BuildId, IsAHash) {
  EXPECT_EQ(build_id().size(), 32u);
  EXPECT_EQ(build_id().find_first_not_of("0123456789abcdef"), std::string_view::npos);
}

// The second run of one model does not measure, verify or compile.
TEST(Optimize, IsQuickTheSecondTime) {
  EmptyCache cache;
  const Source source = source_with(matmul_softmax());
  OptimizeRequest request;
  request.compile.verification = Verification::model;
  request.compile.threads = 1;
  request.rounds = 6;
  const Optimized first = optimize(source, request), second = optimize(source, request);
  // Strategies that do not apply to this machine are left out.
  ASSERT_EQ(first.plan.main().strategies.size(),
            static_cast<std::size_t>(std::ranges::count_if(
                strategies(), [](std::string_view s) { return absence_of(s).empty(); })));
  for (std::size_t i = 0; i < first.plan.main().strategies.size(); ++i) {
    const StrategyRecord &a = first.plan.main().strategies[i],
                         &b = second.plan.main().strategies[i];
    EXPECT_EQ(a.max_error, b.max_error) << a.name;
    EXPECT_EQ(a.error_limit, b.error_limit) << a.name;
    EXPECT_EQ(first.errors[i].size(), second.errors[i].size()) << a.name;
  }
  for (const GroupRecord& g : second.plan.main().variants[0].groups)
    EXPECT_NE(g.reason, "measured");
}

}  // namespace
}  // namespace hone
