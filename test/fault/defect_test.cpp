// Defects that other projects shipped, as tests that fail if Hone has them. The numbers are those
// of the list of features.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <regex>
#include <set>

#include "backend/backend.h"
#include "base/flags.h"
#include "base/process.h"
#include "compile/optimize.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "plan/plan_text.h"
#include "test/fault/models.h"

namespace hone::test {
namespace {

CompileOptions plain() { return {.strategy = "cpu", .threads = 1, .cache = false}; }

std::size_t launches_in(const Plan& plan) {
  std::size_t n = 0;
  for_each_step(plan.main().variants[0].steps,
                [&](const Step& s) { n += s.kind == Step::Kind::launch; });
  return n;
}

std::string wrong_numbers(const Function& f, const Plan& plan, const std::vector<Array>& inputs) {
  std::vector<Array> got = session_of(std::make_shared<const Plan>(plan))->run(inputs);
  std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::stepwise);
  std::vector<Wide> wide = evaluate_wide(f, inputs, Mode::wide);
  for (std::size_t i = 0; i < got.size(); ++i)
    if (Comparison c = accept(got[i], strict[i], wide[i]); !c.ok) return cat("result ", i, ": ", c);
  return "";
}

const Function& function_of(const SmallModel& m) { return m.source.variants[0].function; }

// The defect: the optimizer returned the model unchanged.
TEST(Defect, N01_TheOptimizedPlanIsAnotherAndRuns) {
  const SmallModel m = small_models()[0];
  CompileOptions bare = plain();
  bare.one_op_groups = true;
  for (const Pass& p : pipeline())
    if (p.name != "expand" && !p.is_needed) bare.passes.off.emplace_back(p.name);
  const Plan slow = compile(m.source, bare), fast = compile(m.source, plain());
  EXPECT_LT(launches_in(fast), launches_in(slow));
  EXPECT_NE(variant_text(fast.main().variants[0]), variant_text(slow.main().variants[0]));
  const auto session = session_of(std::make_shared<const Plan>(fast));
  session->run(m.inputs[0]);
  EXPECT_EQ(session->counters().launches, static_cast<std::int64_t>(launches_in(fast)));
}

Function without_relu(const Function& f, RuleLog*) {
  return transform(f, [&](NodeId n, Copier& copy, Function&) -> Values {
    const Value v(&f.graph(), n);
    return v.is(ops::relu) ? Values{copy(v.operand(0))} : Values{};
  });
}

// The defect: a speed-up was measured against a program that computes nothing. Here a row has times
// only together with the error of the same plan.
TEST(Defect, N02_AWrongPlanHasNoRowOfTimes) {
  const SmallModel m = small_models()[0];
  static std::vector<Pass> list;
  list = {{"fault", "leaves relu out", without_relu}};
  list.insert(list.end(), pipeline().begin(), pipeline().end());
  for (bool is_wrong : {false, true}) {
    OptimizeRequest request;
    request.compile = plain();
    request.compile.verification = Verification::model;
    if (is_wrong) request.compile.passes.list = list;
    request.strategies = {"ref", "cpu"};
    request.rounds = 3;
    Optimized out;
    try {
      out = optimize(m.source, request);
      ASSERT_FALSE(is_wrong) << "a wrong plan was handed out";
      const StrategyRecord& row = out.plan.main().strategies[1];
      EXPECT_GT(row.ms, 0);
      EXPECT_GE(row.max_error, 0);
      EXPECT_LE(row.max_error, row.error_limit);
      EXPECT_FALSE(out.errors[1].empty());
    } catch (const UserError& e) {
      ASSERT_TRUE(is_wrong) << e.what();
      EXPECT_NE(std::string(e.what()).find("differs from the reference"), std::string::npos)
          << e.what();
    }
  }
}

int refused_kernel = -1;  // index of the distinct kernel that cannot be compiled
std::set<std::string> kernels_seen;

class ForgetfulTarget final : public Target {
 public:
  explicit ForgetfulTarget(std::unique_ptr<Target> good) : good_(std::move(good)) {}
  const TargetInfo& info() const override { return good_->info(); }
  std::string_view version() const override { return good_->version(); }
  Listing list(const CompileJob& job) const override { return good_->list(job); }
  std::vector<Binary> compile(std::span<const CompileJob> jobs, ThreadPool& pool) const override {
    for (const CompileJob& job : jobs) {
      const int number = static_cast<int>(kernels_seen.size());
      if (kernels_seen.insert(job.entry).second && number == refused_kernel) refused_ = job.entry;
      if (job.entry == refused_) throw UserError("kernel ", refused_kernel, " cannot be compiled");
    }
    return good_->compile(jobs, pool);
  }

 private:
  std::unique_ptr<Target> good_;
  mutable std::string refused_;
};

// The defect: when a kernel failed, the input was returned.
TEST(Defect, N03_AKernelThatFailsIsReplacedByAnEqualOneOrIsAnError) {
  Backend b = backend("cpu");
  b.target = [](std::string_view isa) -> std::unique_ptr<Target> {
    return std::make_unique<ForgetfulTarget>(backend("cpu").target(isa));
  };
  const std::vector<SmallModel> models = small_models();
  int errors = 0;
  for (std::size_t i : {0, 2}) {
    const SmallModel& m = models[i];
    for (refused_kernel = 0;; ++refused_kernel) {
      CompileOptions options = plain();
      options.backend = &b;
      kernels_seen.clear();
      try {
        const Plan plan = compile(m.source, options);
        EXPECT_EQ(wrong_numbers(function_of(m), plan, m.inputs[0]), "") << refused_kernel;
      } catch (const UserError&) {
        ++errors;
      }
      if (std::ssize(kernels_seen) <= refused_kernel) break;
    }
  }
  EXPECT_GT(errors, 3);
}

// The defect: the fast and the slow path computed different functions.
TEST(Defect, N04_EveryWayToCompileComputesTheSame) {
  for (const SmallModel& m : small_models()) {
    std::vector<std::pair<std::string, CompileOptions>> ways;
    for (const char* strategy : {"cpu", "onednn", "auto"}) {
      ways.emplace_back(strategy, plain());
      ways.back().second.strategy = strategy;
    }
    ways.emplace_back("one op groups", plain());
    ways.back().second.one_op_groups = true;
    ways.emplace_back("x86-64-v3", plain());
    ways.back().second.targets = {"x86-64-v3"};
    for (const auto& [name, options] : ways)
      EXPECT_EQ(wrong_numbers(function_of(m), compile(m.source, options), m.inputs[1]), "")
          << m.name << ", " << name;
  }
}

// The defect: exact GELU became its tanh form in the fast path.
TEST(Defect, N05_ExactGeluStaysExact) {
  const int n = 4001;
  for (const Op* op : {&ops::gelu, &ops::gelu_tanh}) {
    Function f;
    f.add_result((*op)(f.add_param(f32({n}), "x")), "y");
    const Source source{"gelu", {{{}, f}}, {}};
    Array x = Array::zeros(DType::f32, {n});
    for (int i = 0; i < n; ++i) x.set_real(i, (i - 2000) / 400.0);
    for (const char* isa : {"native", "x86-64-v3"}) {
      CompileOptions options = plain();
      options.targets = {isa};
      const auto plan = std::make_shared<const Plan>(compile(source, options));
      const std::vector<Array> y = session_of(plan)->run(std::vector<Array>{x});
      double exact = 0, approximate = 0;
      for (int i = 0; i < n; ++i) {
        const double v = x.real(i), erf = 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))),
                     tanh = 0.5 * v *
                            (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
        exact = std::max(exact, std::fabs(y[0].real(i) - erf));
        approximate = std::max(approximate, std::fabs(y[0].real(i) - tanh));
      }
      const bool is_exact = op == &ops::gelu;
      EXPECT_LT(is_exact ? exact : approximate, 4e-6) << op->name << " " << isa;
      EXPECT_GT(is_exact ? approximate : exact, 2e-4) << op->name << " " << isa;
    }
  }
}

// The defects: folding left dangling edges, and live code was removed as dead.
TEST(Defect, N10_EveryPassLeavesAValidFunctionOfTheSameMeaning) {
  for (const SmallModel& m : small_models()) {
    const Function& f = function_of(m);
    const std::vector<Array>& inputs = m.inputs[0];
    const std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::stepwise),
                            wide = evaluate_wide(f, inputs, Mode::wide);
    std::vector<PassRecord> records;
    run_passes(f, {.verify_each = true, .keep = true}, &records);
    ASSERT_EQ(records.size(), pipeline().size());
    for (const PassRecord& r : records) {
      const std::vector<Array> got = evaluate(*r.after, inputs);
      ASSERT_EQ(got.size(), wide.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        const Comparison c = accept(got[i], strict[i], wide[i]);
        EXPECT_TRUE(c.ok) << m.name << " after " << r.name << ": " << c;
      }
    }
  }
}

// The defect: speed-ups were constants in the program.
TEST(Defect, N11_NoTimeIsShownThatWasNotMeasured) {
  const SmallModel m = small_models()[2];
  const Plan predicted = compile(m.source, {.strategy = "auto", .threads = 1, .cache = false});
  EXPECT_FALSE(predicted.measured);
  for (const GroupRecord& g : predicted.main().variants[0].groups) {
    EXPECT_TRUE(g.reason == "predicted" || g.reason == "only candidate") << g.reason;
    for (const CandidateRecord& c : g.candidates()) EXPECT_EQ(c.ms, -1) << c.name;
  }
  OptimizeRequest request;
  request.compile = plain();
  request.strategies = {"ref", "cpu", "auto"};
  request.rounds = 5;
  const Optimized a = optimize(m.source, request), b = optimize(m.source, request);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_FALSE(a.times[i].empty());
    EXPECT_EQ(a.plan.main().strategies[i].ms, median_interval(a.times[i]).median);
    EXPECT_NE(a.times[i], b.times[i]) << "two runs of a clock agree to the last bit";
  }
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string help_of(const std::string& command) {
  const std::vector<std::string> argv = {HONE_PROGRAM, command, "--help"};
  return run_process(argv).output;
}

// The defect: the manual listed options that did not exist.
TEST(Defect, N13_EveryDocumentedOptionExists) {
  const fs::path root = HONE_SOURCE_DIR;
  std::string docs = text_of(root / "README.md");
  for (const auto& e : fs::directory_iterator(root / "docs"))
    if (e.path().extension() == ".md") docs += text_of(e.path());
  const std::regex call("\\bhone ([a-z]+)((?: +[^`\\n]*)?)"), option("--[a-z][a-z-]*"),
      variable("\\bHONE_[A-Z_]+");
  int options = 0, variables = 0;
  for (std::sregex_iterator it(docs.begin(), docs.end(), call), end; it != end; ++it) {
    const std::string rest = (*it)[2];
    if (rest.find("--") == std::string::npos) continue;
    const std::string help = help_of((*it)[1]);
    for (std::sregex_iterator o(rest.begin(), rest.end(), option); o != end; ++o, ++options)
      EXPECT_NE(help.find(o->str()), std::string::npos)
          << "hone " << (*it)[1] << " has no " << o->str();
  }
  // Variables that the build and the tests read.
  std::set<std::string> known = {"HONE_MODELS",
                                 "HONE_SANITIZE",
                                 "HONE_PCH",
                                 "HONE_TESTS",
                                 "HONE_CONFORMANCE",
                                 "HONE_CONFORMANCE_PART",
                                 "HONE_RANDOM_FUNCTIONS",
                                 "HONE_WHOLE_TRAINING"};
  for (const Flag& f : all_flags()) known.emplace(f.name);
  for (std::sregex_iterator v(docs.begin(), docs.end(), variable), end; v != end; ++v, ++variables)
    EXPECT_TRUE(known.contains(v->str())) << v->str() << " is documented and unknown";
  EXPECT_GT(options, 3);
  EXPECT_GT(variables, 0);
  const std::vector<std::string> wrong = {HONE_PROGRAM, "optimize", "--verfy", "model", "x.onnx"};
  const ProcessResult r = run_process(wrong);
  EXPECT_EQ(r.status, 2);
  EXPECT_NE(r.output.find("--verify"), std::string::npos) << r.output;
}

}  // namespace
}  // namespace hone::test
