// Timing on a device with its own memory covers kernels, without copies from and to the host.
#include "compile/kernels.h"
#include "compile/optimize.h"
#include "kernel/nest/nest_candidate.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "test/backend/conformance.h"
#include "test/codegen/cases.h"
#include "test/far/far.h"
#include "test/kernel/steps.h"
#include "verify/kernel/trial.h"

namespace hone::test {
namespace {

Function small() {
  Function f;
  const Value x = f.add_param(f32({16, 8}), "x"), w = f.add_param(f32({16, 8}), "w");
  f.add_result(ops::tanh(x) + w, "y");
  return f;
}

TEST(Timing, RunsOfACandidateCopyNothing) {
  const std::shared_ptr<ThreadPool> pool = make_thread_pool({.threads = 1});
  const std::unique_ptr<Target> target = far_backend().target("native");
  CompileStore store(false);
  KernelCompiler compile(*target, *pool, store.code);
  const GroupSpec spec = spec_of(small());
  const Candidate nest = nest_candidate(spec, target->info());
  Trial trial(spec, nest, compile, std::make_shared<TrialMemory>(open_far_device()), pool, {},
              Fill::random, 7, Trial::Use::time);
  trial.bind();
  const FarCounts before = far_counts();
  constexpr int runs = 20;
  for (int i = 0; i < runs; ++i) trial.run();
  const FarCounts after = far_counts();
  EXPECT_EQ(after.launches - before.launches, runs * std::ssize(nest.steps));
  EXPECT_EQ(after.uploads - before.uploads, 2) << "each parameter once";
  EXPECT_EQ(after.downloads - before.downloads, 0);
}

TEST(Timing, RoundsOfOptimizeCopyNothing) {
  constexpr int rounds[] = {2, 40};
  FarCounts of_rounds[2];
  for (int many = 0; many < 2; ++many) {
    OptimizeRequest request;
    request.compile.cache = false;
    request.compile.threads = 1;
    request.strategies = {"far"};
    request.rounds = rounds[many];
    request.budget = 30;
    const FarCounts before = far_counts();
    const Optimized out = optimize({"timing", {{{}, small()}}, {}}, request);
    ASSERT_EQ(out.plan.main().strategies.at(0).failure, "");
    const FarCounts after = far_counts();
    of_rounds[many] = {after.uploads - before.uploads, after.downloads - before.downloads,
                       after.launches - before.launches};
  }
  // A round repeats runs until its time is used up; on a busy machine that may be one run.
  EXPECT_GE(of_rounds[1].launches, rounds[1]);
  EXPECT_EQ(of_rounds[1].uploads, of_rounds[0].uploads);
  EXPECT_EQ(of_rounds[1].downloads, of_rounds[0].downloads);
}

// A single step is recorded in its third run and replayed from then on.
TEST(Timing, EvenOneLaunchIsReplayed) {
  CompileOptions options{.backend = &far_backend()};
  options.cache = false;
  const auto plan = std::make_shared<const Plan>(compile({"one", {{{}, small()}}, {}}, options));
  ASSERT_EQ(plan->main().variants.at(0).steps.size(), 1);
  Session session(Executable::load(plan, open_far_device()), {.threads = 1});
  const Type type = f32({16, 8});
  const std::vector<Array> inputs = {random_array(type, 1), random_array(type, 2)};
  const FarCounts before = far_counts();
  constexpr int runs = 6;
  for (int i = 0; i < runs; ++i) session.run(inputs);
  const FarCounts after = far_counts();
  EXPECT_EQ(after.launches - before.launches, runs);
  EXPECT_EQ(after.replays - before.replays, runs - 2);
}

}  // namespace
}  // namespace hone::test
