// Kernels as C, compiled by gcc: every operation against the reference, as nest_test.cpp does it
// for LLVM.
#include <gtest/gtest.h>

#include <set>

#include "c_library.h"
#include "cases.h"
#include "codegen/c/module.h"
#include "group_runner.h"

namespace hone::test {

namespace {

const TargetInfo info = cpu_target_info("x86-64-v3");

// A candidate of kernels and what it is tried on.
struct Trial {
  std::string name;
  GroupSpec spec;
  Candidate candidate;
  std::vector<std::vector<Array>> inputs;
};

// Kernels that are compiled together, because a compiler takes longer to start than to compile a
// kernel; equal ones once.
class Batch {
 public:
  void add(const Candidate& candidate) {
    for (const Candidate::Step& step : candidate.steps) {
      const Kernel& kernel = std::get<Kernel>(step.what);
      if (!known_.insert(entry(kernel)).second) continue;
      modules_.resize((known_.size() + per_module - 1) / per_module);
      modules_.back().add_entry(kernel, entry(kernel));
    }
  }
  void compile() {
    std::vector<std::string> sources;
    for (const c::Module& m : modules_) sources.push_back(m.text());
    library_ = std::make_unique<CLibrary>(sources);
  }
  CandidateRunner runner(const Candidate& candidate) const {
    std::vector<KernelFunction> kernels;
    for (const Candidate::Step& step : candidate.steps)
      kernels.push_back(library_->kernel(entry(std::get<Kernel>(step.what))));
    return CandidateRunner(candidate, std::move(kernels));
  }

 private:
  static constexpr std::size_t per_module = 60;
  static std::string entry(const Kernel& kernel) { return "k_" + to_hex(hash(kernel)); }

  std::set<std::string> known_;
  std::vector<c::Module> modules_;
  std::unique_ptr<CLibrary> library_;
};

Trial nest_trial(const std::string& name, const Function& f, std::vector<std::vector<Array>> inputs,
                 bool is_padded = false) {
  GroupSpec spec = spec_of(f, is_padded);
  Candidate candidate = nest_candidate(spec, info);
  return {name, std::move(spec), std::move(candidate), std::move(inputs)};
}

std::vector<Trial> of_every_operation() {
  std::vector<Trial> out;
  for (const harness::Case& c : harness::all_cases())
    if (!holds_control(c.function)) out.push_back(nest_trial(c.name, c.function, {c.inputs}));
  return out;
}

std::vector<Trial> of_padded_layouts() {
  std::vector<Trial> out;
  for (const Op* op : kinds)
    for (const harness::Case& c : harness::cases_of(*op))
      out.push_back(nest_trial(c.name, c.function, {c.inputs}, true));
  return out;
}

std::vector<Trial> of_extreme_numbers() {
  std::vector<Trial> out;
  for (const Op* op : all_ops()) {
    if (op->kind != OpKind::elementwise) continue;
    for (const harness::Case& c : harness::cases_of(*op)) {
      std::mt19937_64 random(3);
      std::vector<std::vector<Array>> inputs;
      for (int i = 0; i < 20; ++i)
        inputs.push_back(harness::inputs_of(
            c.sample, [&](DType d) { return harness::extreme_number(d, random); }));
      out.push_back(nest_trial(c.name, c.function, std::move(inputs)));
    }
  }
  return out;
}

std::vector<Trial> of_long_loops() {
  std::vector<Trial> out;
  for (const Large& l : large_functions())
    out.push_back(nest_trial(l.name, l.function, {l.inputs}));
  return out;
}

class C : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    batch_ = std::make_unique<Batch>();
    for (auto make : {of_every_operation, of_padded_layouts, of_extreme_numbers, of_long_loops}) {
      lists_.push_back(make());
      for (const Trial& t : lists_.back()) batch_->add(t.candidate);
    }
    batch_->compile();
  }
  static void TearDownTestSuite() {
    lists_.clear();
    batch_ = nullptr;
  }

  static std::string verdict(const Trial& t, std::span<const Array> inputs) {
    std::vector<Wide> strict = evaluate_wide(t.spec.function, inputs, Mode::strict),
                      wide = evaluate_wide(t.spec.function, inputs, Mode::wide);
    std::vector<Array> got = batch_->runner(t.candidate).run(t.spec, inputs, {});
    for (std::size_t i = 0; i < got.size(); ++i)
      if (Comparison r = accept(got[i], strict[i], wide[i]); !r) return cat("result ", i, ": ", r);
    return "";
  }
  static void check(const std::vector<Trial>& trials, std::size_t at_least) {
    EXPECT_GE(trials.size(), at_least);
    for (const Trial& t : trials)
      for (const std::vector<Array>& inputs : t.inputs)
        EXPECT_EQ(verdict(t, inputs), "") << t.name << "\n" << print(t.spec.function);
  }

  static std::unique_ptr<Batch> batch_;
  static std::vector<std::vector<Trial>> lists_;
};
std::unique_ptr<Batch> C::batch_;
std::vector<std::vector<Trial>> C::lists_;

TEST_F(C, EveryOperationAgreesWithTheReference) { check(lists_[0], 400); }

TEST_F(C, StridesMayLeaveRoom) { check(lists_[1], 50); }

// Overflow, division by zero, NaN, casts out of range: as docs/numbers.md says.
TEST_F(C, ElementwiseOperationsMeetExtremeNumbers) { check(lists_[2], 100); }

TEST_F(C, LongLoopsAgreeWithTheReference) { check(lists_[3], 20); }

TEST_F(C, ChunksMayBeDividedInAnyWay) {
  for (const Trial& t : lists_[3]) {
    const CandidateRunner runner = batch_->runner(t.candidate);
    EXPECT_EQ(runner.run(t.spec, t.inputs[0], {}),
              runner.run(t.spec, t.inputs[0], {.chunks_per_call = 1, .backwards = true}))
        << t.name;
  }
}

}  // namespace

}  // namespace hone::test
