// The written plan must be the verified one: a plan that is changed in between is not kept, and a
// file that computes something else fails when it is run.
#include "optimize/prove.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <set>

#include "cli/commands.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/require.h"
#include "plan/plan_file.h"
#include "runtime/self_test.h"
#include "test/cli/process.h"
#include "test/compile/models.h"
#include "verify/model/self_test.h"
#include "verify/model/whole.h"

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> command = {HONE_RUN, "--selftest"};

class Proved : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cache_ = std::make_unique<test::EmptyCache>();
    const Source source =
        test::source_of(fs::path(HONE_SOURCE_DIR) / "examples/digits/digits.onnx");
    plan_ = std::make_unique<Plan>(compile(source, {.strategy = "cpu"}));
    record_self_tests(*plan_, {});
  }
  static void TearDownTestSuite() {
    cache_ = nullptr;
    plan_ = nullptr;
  }
  static fs::path file() { return cache_->directory() / "plan.hone"; }

  // The error message of writing the changed plan; empty if it was written.
  static std::string refusal(const std::function<void(Plan&)>& change) {
    Plan p = *plan_;
    change(p);
    try {
      write_proved(file(), p, command);
      return "";
    } catch (const InternalError& e) {
      return e.what();
    } catch (const UserError& e) {
      return cat("checked before writing: ", e.what());
    }
  }

  static std::unique_ptr<test::EmptyCache> cache_;
  static std::unique_ptr<Plan> plan_;
};
std::unique_ptr<test::EmptyCache> Proved::cache_;
std::unique_ptr<Plan> Proved::plan_;

Array flipped(const Array& a, std::size_t bit) {
  Array out = Array::zeros(a.dtype(), a.dims());
  std::ranges::copy(a.bytes(), out.writable_bytes().begin());
  out.writable_bytes()[bit / 8] ^= std::byte{1} << bit % 8;
  return out;
}

TEST_F(Proved, AnUnchangedPlanIsWrittenAndPassesEverywhere) {
  EXPECT_EQ(refusal([](Plan&) {}), "");
  const test::Finished done = test::finish({HONE_RUN, "--selftest", file()});
  EXPECT_EQ(done.code, 0) << done.text;
  EXPECT_NE(done.text.find("as verified, with 1, 2 and 4 threads"), std::string::npos) << done.text;
  EXPECT_NE(done.text.find("f32[5,1,8,8]"), std::string::npos) << done.text;
}

struct Change {
  const char* name;
  std::function<void(Plan&)> to;
  bool changes_results = true;  // if false, only the content hash detects it
};

std::vector<Change> changes() {
  return {
      {"a bit of a weight",
       [](Plan& p) {
         for (PlanWeight& w : p.weights) w.data = flipped(w.data, 30);
         for (PreparedBuffer& b : p.prepared) {
           const auto size = static_cast<std::int64_t>(b.data.size());
           if (size > 0) b.data = flipped(Array(DType::u8, {size}, b.data), 30).storage();
         }
       }},
      {"the lowest bit of a weight",
       [](Plan& p) { p.weights[0].data = flipped(p.weights[0].data, 0); }, false},
      {"an offset",
       [](Plan& p) {
         for (Step& s : p.main().variants[0].steps)
           for (View& v : s.operands)
             if (p.main().variants[0].buffers[v.buffer].kind == PlanBuffer::Kind::arena) {
               v.offset = v.offset + Dim(64);
               return;
             }
       }},
      {"a bit of the code", [](Plan& p) { p.binaries[0].code[40] ^= std::byte{4}; }, false},
      {"the begin of a kernel's code",
       [](Plan& p) {
         const auto launch =
             std::ranges::find(p.main().variants[0].steps, Step::Kind::launch, &Step::kind);
         Binary& b = p.binaries[p.kernels[launch->index].binary];
         for (std::size_t i = 0; i < 16; ++i) b.code[b.entries[0].offset + i] ^= std::byte{4};
       }},
      {"a guard",
       [](Plan& p) {
         p.main().variants[0].guards = {
             {Guard::Kind::equal, p.main().params[0].type.shape.dims[0], Dim(3)}};
       }},
      {"a step that is left out", [](Plan& p) { p.main().variants[0].steps.pop_back(); }},
  };
}

TEST_F(Proved, AChangeAfterVerificationIsRefusedAndTheOldFileStays) {
  for (const Change& c : changes()) {
    std::ofstream(file()) << "old";
    EXPECT_NE(refusal(c.to), "") << c.name;
    std::ifstream in(file());
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "old") << c.name;
    for (const fs::directory_entry& e : fs::directory_iterator(cache_->directory()))
      EXPECT_EQ(e.path().string().find(".tmp."), std::string::npos) << e.path();
  }
}

// Also without the record of the verified content, which an editor could recompute.
TEST_F(Proved, AChangeIsFoundByItsResults) {
  for (const Change& c : changes()) {
    if (!c.changes_results) continue;
    EXPECT_NE(refusal([&](Plan& p) {
                c.to(p);
                p.content.reset();
              }),
              "")
        << c.name;
  }
}

// The content covers the requirements on inputs, too: no self-test depends on them.
TEST_F(Proved, TheContentsCountWhatIsAskedOfInputs) {
  Plan p;
  const Dim n = Dim::symbol("n", 1, 64), m = Dim::symbol("m", 1, 64);
  p.main().params.push_back({"x", Type(DType::f32, {n, m}), false, {}});
  p.main().checks.push_back({n, m, "sizes differ"});
  const std::vector<std::function<void(Plan&)>> all = {
      [](Plan&) {},
      [](Plan& q) { q.main().checks.clear(); },
      [&](Plan& q) { q.main().params[0].type.shape.dims[1] = Dim::symbol("m", 1, 65); },
      [](Plan& q) { q.main().params[0].name = "y"; },
      [](Plan& q) { q.main().params[0].donated = true; },
      [](Plan& q) { q.main().params[0].required = Array::zeros(DType::f32, {1, 1}); },
  };
  std::set<std::string> seen;
  for (const auto& change : all) {
    Plan q = p;
    change(q);
    seen.insert(to_hex(contents_of(q)));
  }
  EXPECT_EQ(seen.size(), all.size());
}

TEST_F(Proved, TheFirstDifferenceIsNamed) {
  Plan p = *plan_;
  p.content.reset();
  p.main().self_tests[0].results[0].values[0] += 1;
  p.main().self_tests[0].results[0].digest.low ^= 1;
  write_plan(file(), p);
  const test::Finished done = test::finish({HONE_RUN, "--selftest", file()});
  EXPECT_EQ(done.code, 1) << done.text;
  for (const char* part : {"result 'logits' element 0: got ", ", expected ", "f32[5,1,8,8]"})
    EXPECT_NE(done.text.find(part), std::string::npos) << done.text;
}

TEST_F(Proved, TimesOfAPlanThatFailsAreNotTold) {
  Plan p = *plan_;
  p.main().self_tests[0].results[0].digest.low ^= 1;
  write_plan(file(), p);
  std::vector<std::string> words = {file(), "--duration", "0.01", "--json"};
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = bench(argv);
  const std::string json = testing::internal::GetCapturedStdout();
  EXPECT_NE(json.find("\"error\": \"not timed: "), std::string::npos) << json;
  EXPECT_EQ(json.find("median"), std::string::npos) << json;
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, exit_differs);
  EXPECT_NE(said.find("not timed: "), std::string::npos) << said;
}

TEST_F(Proved, APlanWithoutSelfTestsSaysSo) {
  Plan p = *plan_;
  p.main().self_tests.clear();
  write_plan(file(), p);
  const test::Finished done = test::finish({HONE_RUN, "--selftest", file()});
  EXPECT_EQ(done.code, 1) << done.text;
  EXPECT_NE(done.text.find("no self-test was run"), std::string::npos) << done.text;
}

// Rows of a table of two, by indices that an input gives and the plan checks.
Plan rows_of_a_table() {
  Function f;
  const Value x = f.add_param(f32({2, 3}), "x"), index = f.add_param(i64({4}), "index");
  require_within(index, Dim(-2), Dim(1), "index");
  f.add_result(ops::gather(Values{x, index}, {{"axis", 0}}), "y");
  return compile({"rows", {{{}, f}}, {}}, {.strategy = "cpu"});
}

TEST_F(Proved, IndicesAreMadeSmallUntilThePlanTakesThem) {
  Plan p = rows_of_a_table();
  record_self_tests(p, {});
  ASSERT_EQ(p.main().self_tests.size(), 1u);
  EXPECT_EQ(p.main().self_tests[0].missing, "");
  EXPECT_EQ(p.main().self_tests[0].inputs[1].high, 1);
  write_proved(file(), p, command);
}

TEST_F(Proved, BothBranchesAreTaken) {
  const auto body = [](const Op& op) {
    Function f;
    f.add_result(op(f.add_param(f32({2, 3}), "x")));
    return std::make_shared<const Function>(std::move(f));
  };
  Function f;
  const Value x = f.add_param(f32({2, 3}), "x"), c = f.add_param(b1({}), "c");
  const Value sum = reduce_axes(ops::reduce_sum, x, {0, 1}),
              is_positive = ops::lt(scalar(f.graph(), 0, DType::f32), sum);
  for (const Value& condition : {is_positive, c})
    f.add_result(
        ops::if_else(Values{condition, x}, {{"then", body(ops::exp)}, {"else", body(ops::tanh)}}));
  Plan p = compile({"branches", {{{}, f}}, {}}, {.strategy = "cpu"});
  record_self_tests(p, {});
  std::array<std::set<bool>, 2> is_exp;  // of each result, in all sets
  for (const SelfTest& t : p.main().self_tests) {
    const double first = self_test_array(t.inputs.at(0)).real(0);
    for (std::size_t r = 0; r < 2; ++r)
      is_exp[r].insert(std::abs(t.results.at(r).values.at(0) - std::exp(first)) < 1e-5);
  }
  EXPECT_EQ(is_exp[0].size(), 2u);
  EXPECT_EQ(is_exp[1].size(), 2u);
  write_proved(file(), p, command);
}

TEST_F(Proved, SmallSamplesAreUsedAsTheyAre) {
  Plan p = rows_of_a_table();
  const std::vector<std::vector<Array>> samples = {
      {Array::zeros(DType::f32, {2, 3}), Array::from_ints(std::vector<std::int64_t>{1, 0, 0, 1})}};
  record_self_tests(p, samples);
  EXPECT_EQ(p.main().self_tests.at(0).inputs.at(1).given, samples[0][1]);
  write_proved(file(), p, command);
}

// Each target has its own ranges of sizes, and a machine that runs code for several targets takes
// the best: the others are tested alone.
TEST_F(Proved, VariantsForAWorseTargetMayHaveOtherRanges) {
  Plan p = *plan_;
  const Dim batch = p.main().params[0].type.shape.dims[0];
  for (const Guard::Kind kind : {Guard::Kind::less_equal, Guard::Kind::greater}) {
    Variant& worse = p.main().variants.emplace_back(p.main().variants[0]);
    worse.devices[0].target = "any";
    worse.guards = {{kind, batch, 3}};
  }
  record_self_tests(p, {});
  for (const SelfTest& t : p.main().self_tests) EXPECT_EQ(t.missing, "") << t.variant;
  write_proved(file(), p, command);
}

TEST_F(Proved, AVariantThatRefusesAllInputsSaysThatItHasNone) {
  Plan p = rows_of_a_table();
  Step never{.kind = Step::Kind::refuse, .name = "not today"};
  p.main().variants[0].steps.insert(p.main().variants[0].steps.begin(), never);
  record_self_tests(p, {});
  EXPECT_EQ(p.main().self_tests.at(0).missing, "not today");
  write_proved(file(), p, command);
  const test::Finished done = test::finish({HONE_RUN, "--selftest", file()});
  EXPECT_EQ(done.code, 1);
  EXPECT_NE(done.text.find("not run: not today"), std::string::npos) << done.text;
}

}  // namespace
}  // namespace hone::cli
