// Kernels as C, compiled by gcc: every operation against the reference, as nest_test.cpp does for
// LLVM.
#include <gtest/gtest.h>

#include <set>

#include "anchored_cases.h"
#include "c_library.h"
#include "cases.h"
#include "codegen/c/module.h"
#include "group_runner.h"
#include "kernel/nest/nest_candidate.h"
#include "ref/enclosure.h"

namespace hone::test {

namespace {

const TargetInfo info = cpu::target_info("x86-64-v3");

// A candidate of kernels and the inputs it runs on.
struct Trial {
  std::string name;
  GroupSpec spec;
  Candidate candidate;
  std::vector<std::vector<Array>> inputs;
};

// Kernels that are compiled together, because starting a compiler takes longer than compiling a
// kernel; equal ones once.
class Batch {
 public:
  explicit Batch(int vector_bits) : vector_bits_(vector_bits) {}

  void add(const Candidate& candidate) {
    for (const Candidate::Step& step : candidate.steps) {
      const Kernel& kernel = std::get<Kernel>(step.what);
      if (!known_.insert(entry(kernel)).second) continue;
      modules_.resize((known_.size() + per_module - 1) / per_module, c::Module(vector_bits_));
      modules_.back().add_entry(kernel, entry(kernel));
    }
  }
  void compile(const std::string& cc) {
    const std::vector<std::string> flags = {"-std=c11", "-O3", "-march=native"};
    std::vector<std::string> sources;
    for (const c::Module& m : modules_) sources.push_back(m.text());
    library_ = std::make_unique<CLibrary>(sources, flags, cc);
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

  int vector_bits_;
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

// Elementwise ones also on overflow, division by zero, NaN, casts out of range: docs/numbers.md.
std::vector<Trial> of_every_operation() {
  std::vector<Trial> out;
  std::mt19937_64 random(3);
  for (const harness::Case& c : as_codes(harness::all_cases())) {
    if (holds_control(c.function)) continue;
    out.push_back(nest_trial(c.name, c.function, {c.inputs}));
    for (int i = 0; i < (c.op->kind == OpKind::elementwise ? 20 : 0); ++i)
      out.back().inputs.push_back(harness::inputs_of(
          c.sample, [&](DType d) { return harness::extreme_number(d, random); }));
  }
  return out;
}

std::vector<Trial> of_padded_layouts() {
  std::vector<Trial> out;
  for (const Op* op : kinds)
    for (const harness::Case& c : as_codes(harness::cases_of(*op)))
      out.push_back(nest_trial(c.name, c.function, {c.inputs}, true));
  return out;
}

std::vector<Trial> of_long_loops() {
  std::vector<Trial> out;
  for (const Large& l : large_functions())
    out.push_back(nest_trial(l.name, l.function, {l.inputs}));
  return out;
}

// Contractions and convolutions on register tiles.
std::vector<Trial> of_tiles(const TargetInfo& info) {
  std::vector<Trial> out;
  for (const AnchoredCase& c : anchored_cases())
    c.run({[&](Build build, const Function& f, Expect, const auto& sizes) {
      GroupSpec spec = group_of(f);
      std::optional<Candidate> candidate = build(spec, info, {});
      ASSERT_TRUE(candidate) << c.name;
      out.push_back({c.name, spec, std::move(*candidate), {random_inputs(f, sizes)}});
    }});
  return out;
}

// Trials with their compiled kernels.
struct Trials {
  explicit Trials(std::vector<Trial> all, int vector_bits = 256, const std::string& cc = "gcc")
      : list(std::move(all)), batch(vector_bits) {
    for (const Trial& t : list) batch.add(t.candidate);
    batch.compile(cc);
  }
  std::vector<Trial> list;
  Batch batch;
};

std::string verdict(const Trial& t, const CandidateRunner& runner, std::span<const Array> inputs) {
  std::vector<Wide> strict = evaluate_wide(t.spec.function, inputs, Mode::strict),
                    wide = evaluate_wide(t.spec.function, inputs, Mode::wide);
  std::vector<Array> got = runner.run(t.spec, inputs, {});
  for (std::size_t i = 0; i < got.size(); ++i) {
    Comparison r = accept(got[i], strict[i], wide[i]);
    if (r) continue;
    // For f64 the rule has no wider dtype, and the reference's own gelu cancels.
    const Comparison inside = accept(got[i], enclose(t.spec.function, inputs)[i]);
    if (!inside || inside.undecided > 0) return cat("result ", i, ": ", r);
  }
  return "";
}

void check(const Trials& trials, std::size_t at_least) {
  EXPECT_GE(trials.list.size(), at_least);
  for (const Trial& t : trials.list)
    for (const std::vector<Array>& inputs : t.inputs)
      EXPECT_EQ(verdict(t, trials.batch.runner(t.candidate), inputs), "") << t.name << "\n"
                                                                          << print(t.spec.function);
}

// The bits do not depend on how chunks are split between calls.
void check_partitions(const Trials& trials) {
  for (const Trial& t : trials.list) {
    const CandidateRunner runner = trials.batch.runner(t.candidate);
    EXPECT_EQ(runner.run(t.spec, t.inputs[0], {}),
              runner.run(t.spec, t.inputs[0], {.chunks_per_call = 1, .backwards = true}))
        << t.name;
  }
}

TEST(C, EveryOperationAgreesWithTheReference) { check(Trials(of_every_operation()), 400); }

TEST(C, StridesMayLeaveRoom) { check(Trials(of_padded_layouts()), 50); }

TEST(C, LongLoopsAgreeWithTheReference) {
  const Trials trials(of_long_loops());
  check(trials, 20);
  check_partitions(trials);
}

TEST(C, SkeletonsAgreeWithTheReference) {
  // Blocks for both vector lengths; a compiler without the longer vectors uses two short ones.
  for (const char* target : {"x86-64-v3", "x86-64-v4"}) {
    const TargetInfo info = cpu::target_info(target);
    const Trials trials(of_tiles(info), info.vector_bits);
    check(trials, 40);
    check_partitions(trials);
  }
}

// softmax(x x) of numbers whose squares have rounding errors too large for exp.
std::vector<Trial> of_softmax_of_squares() {
  std::vector<Trial> out;
  for (DType t : {DType::f32, DType::f64})
    for (std::int64_t axis : {0, 1}) {
      Function f;
      const Value x = f.add_param({t, {64, 96}}, "x");
      f.add_result(ops::softmax(x * x, {{"axis", axis}}));
      const double most = t == DType::f32 ? 1e5 : 1e10;
      const Array numbers = random_array({t, {64, 96}}, 7, 0.9 * most, most);
      out.push_back(nest_trial(cat("softmax of squares, ", t, ", axis ", axis), f, {{numbers}}));
    }
  return out;
}

TEST(C, AProductLessItsMaximumIsNotFused) {
  for (const char* cc : {"gcc", "clang-19"}) {
    SCOPED_TRACE(cc);
    check(Trials(of_softmax_of_squares(), 256, cc), 4);
  }
}

// x x + y, where y is the negated rounded x x: gives the rounding error if the operations are
// fused.
constexpr double rest = 0x1p-24, root = 1 + 0x1p-12, rounded_square = 1 + 0x1p-11;

Array columns_of(std::initializer_list<double> column) {
  Array a = Array::zeros(DType::f32, {static_cast<std::int64_t>(column.size()), 64});
  std::int64_t at = 0;
  for (double x : column)
    for (int i = 0; i < 64; ++i) a.set_real(at++, x);
  return a;
}

std::vector<Trial> of_sums_of_products() {
  std::vector<Trial> out;
  Function f;
  const Value x = f.add_param(f32({1, 64}), "x"), y = f.add_param(f32({1, 64}), "y");
  f.add_result(x * x + y);
  out.push_back(nest_trial("sum", f, {{columns_of({root}), columns_of({-rounded_square})}}));
  Function dot;
  const Value a = dot.add_param(f32({64, 2}), "a"), b = dot.add_param(f32({2, 64}), "b");
  dot.add_result(ops::matmul(a, b));
  Array rows = Array::zeros(DType::f32, {64, 2});
  for (int i = 0; i < 64; ++i) rows.set_real(2 * i, 1), rows.set_real(2 * i + 1, root);
  const std::vector<Array> factors = {rows, columns_of({-rounded_square, root})};
  out.push_back(nest_trial("loops of a product of matrices", dot, {factors}));
  const GroupSpec spec = group_of(dot);
  out.push_back({"product of matrices", spec, *contraction_candidate(spec, info), {factors}});
  return out;
}

TEST(C, ASumOfProductsIsFused) {
#ifndef __x86_64__
  GTEST_SKIP() << "NOTHING WAS TESTED: not every processor has the instruction";
#endif
  for (const char* cc : {"gcc", "clang-19"}) {
    const Trials trials(of_sums_of_products(), 256, cc);
    for (const Trial& t : trials.list) {
      const Array got = trials.batch.runner(t.candidate).run(t.spec, t.inputs[0], {})[0];
      for (std::int64_t i = 0; i < got.count(); ++i)
        ASSERT_EQ(got.real(i), rest) << cc << ", " << t.name << " at " << i;
    }
  }
}

}  // namespace

}  // namespace hone::test
