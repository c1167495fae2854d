// Faults planted in the compiler are found, and the message names the node at fault.
#include "base/file.h"
#include "base/random.h"
#include "compile/blame.h"
#include "compile/evidence.h"
#include "compile/optimize.h"
#include "ops/common.h"
#include "ops/require.h"
#include "ref/expected.h"
#include "runtime/cache.h"
#include "test/compile/models.h"
#include "verify/sample.h"

namespace hone {
namespace {

using namespace test;

// ---- wrong rules: passes that leave one operation out

constexpr int victim = 3;  // which one of its kind, in order

Value nth(const Function& f, const Op& op) {
  int n = 0;
  for (NodeId id : live_nodes(f))
    if (Value v(&f.graph(), id); v.is(op) && n++ == victim) return v;
  return {};
}

template <const Op& op>
Function without_one(const Function& f, RuleLog*) {
  const Value bad = nth(f, op);
  if (!bad) return f;
  return transform(f, [&](NodeId n, Copier& copy, Function&) -> Values {
    return n == bad.node() ? Values{copy(bad.operand(0))} : Values{};
  });
}

// The compiler's passes with one more in front.
std::span<const Pass> list_with(const Pass& wrong) {
  static std::vector<Pass> list;
  list = {wrong};
  list.insert(list.end(), pipeline().begin(), pipeline().end());
  return list;
}

template <const Op& op>
CompileOptions faulty() {
  CompileOptions options;
  options.strategy = "cpu";
  options.passes.list = list_with({"fault", "leaves one operation out", without_one<op>});
  return options;
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
}

TEST(FirstDifference, NamesTheNodeOfARealModelThatARuleBroke) {
  EmptyCache cache;
  const Source source = model_source("ultraface_rfb_320");
  const Value broken = nth(source.variants[0].function, ops::relu);
  ASSERT_TRUE(broken);
  const auto d = first_difference(source, faulty<ops::relu>(), source.samples[0]);
  ASSERT_TRUE(d);
  expect_contains(d->where, origins_text(broken));
  expect_contains(d->where, "node ");
  EXPECT_GT(d->comparison.max_abs_error, d->comparison.limit);
  EXPECT_EQ(first_difference(source, {.strategy = "cpu"}, source.samples[0]), std::nullopt);
}

TEST(FirstDifference, LooksIntoTheBranchThatIsTaken) {
  EmptyCache cache;
  const Source source = model_source("silero_vad");
  const auto d = first_difference(source, faulty<ops::relu>(), source.samples[0]);
  ASSERT_TRUE(d);
  EXPECT_TRUE(d->where.starts_with("relu ")) << d->where;
  expect_contains(d->where, "node ");
  expect_contains(d->where, "(Relu)");
}

// Wrong only if tanh(x) is not a result: a plan that keeps it as a result is right.
Function exp_for_tanh_inside(const Function& f, RuleLog*) {
  for (const Function::Result& r : f.results())
    if (r.value.is(ops::tanh)) return f;
  return transform(f, [&](NodeId n, Copier& copy, Function&) -> Values {
    const Value v(&f.graph(), n);
    return v.is(ops::tanh) ? Values{ops::exp(copy(v.operand(0)))} : Values{};
  });
}

TEST(FirstDifference, FindsWhatIsWrongOnlyWhileItIsHidden) {
  EmptyCache cache;
  Function f;
  Value x = f.add_param(f32({5, 7}), "x");
  f.add_result(ops::tanh(x * 0.5) * 3.0, "y");
  CompileOptions options{.strategy = "cpu"};
  options.passes.list = list_with({"fault", "breaks what is hidden", exp_for_tanh_inside});
  const auto d =
      first_difference({"built", {{{}, f}}, {}}, options,
                       {Array::of<float>(DType::f32, {5, 7}, std::vector<float>(35, 1))});
  ASSERT_TRUE(d);
  EXPECT_TRUE(d->where.starts_with("mul ")) << d->where;
}

TEST(Verification, OfTheWholeModelNamesTheNode) {
  EmptyCache cache;
  const Source source = model_source("ultraface_rfb_320");
  OptimizeRequest request;
  request.compile = faulty<ops::relu>();
  request.compile.verification = Verification::model;
  request.strategies = {"cpu"};
  try {
    optimize(source, request);
    FAIL() << "a wrong plan was not refused";
  } catch (const UserError& e) {
    expect_contains(e.what(), "differs from the reference");
    expect_contains(e.what(), origins_text(nth(source.variants[0].function, ops::relu)));
    expect_contains(e.what(), "pass 'fault' changes its meaning");
  }
}

// ---- results that are right although the rule refuses them

// Next to a tie the order of a sum decides which integer is the nearest, and both evaluations of
// the reference may agree on the other one.
TEST(Verification, AWholeNumberThatTheOrderOfASumDecidesIsRight) {
  EmptyCache cache;
  Function f;
  const Value x = f.add_param(f32({1, 64}), "x"), w = f.add_param(f32({1, 64}), "w");
  f.add_result(ops::round(reduce_axes(ops::reduce_sum, x * w, {1})), "y");
  std::vector<std::vector<Array>> refused;  // inputs on which the rule alone refuses the plan
  const auto plan = std::make_shared<const Plan>(
      compile({"round", {{{}, f}}, {}}, {.strategy = "cpu", .verification = Verification::none}));
  Session session(Executable::load(plan, open_devices(*plan)));
  for (std::uint64_t seed = 1; seed <= 200 && refused.size() < 3; ++seed) {
    Random random(seed);
    std::vector<float> weights(64);
    for (float& v : weights) v = static_cast<float>(random.unit() - 0.5);
    for (int pairs = 0; pairs < 8; ++pairs) {
      const auto at = static_cast<std::size_t>(8 * pairs);
      weights[at + static_cast<std::size_t>(random.below(4))] = 0x1p24f;
      weights[at + static_cast<std::size_t>(random.between(4, 7))] = -0x1p24f;
    }
    const std::vector<Array> inputs = {
        Array::of<float>(DType::f32, {1, 64}, std::vector<float>(64, 1)),
        Array::of<float>(DType::f32, {1, 64}, weights)};
    Evaluator evaluator(f);
    if (!Expected(evaluator, inputs, Mode::stepwise).accept(0, widen(session.run(inputs)[0])).ok)
      refused.push_back(inputs);
  }
  ASSERT_FALSE(refused.empty());
  OptimizeRequest request;
  request.compile.verification = Verification::model;
  request.strategies = {"cpu"};
  EXPECT_NO_THROW(optimize({"round", {{{}, f}}, refused}, request));
}

// ---- a wrong kernel: the compile cache holds the code of another function

struct OneOp {
  Function function;
  std::string origin;
};

Plan compiled(const Function& f) {
  CompileOptions options;
  options.strategy = "cpu";
  return compile({"one", {{{}, f}}, {}}, options);
}

// Stores the code of the one kernel that differs, taken from `wrong`, under the key of `right`, and
// deletes the verification results.
void exchange_code(const EmptyCache& directory, const Function& right, const Function& wrong) {
  const Plan a = compiled(right), b = compiled(wrong);
  ASSERT_EQ(a.kernels.size(), b.kernels.size());
  const CompileCache kernels(directory.directory(), "kernels");
  int exchanged = 0;
  for (std::size_t i = 0; i < a.kernels.size(); ++i) {
    if (a.kernels[i].hash == b.kernels[i].hash) continue;
    Binary code = deserialize(kernels.find(b.kernels[i].hash).value(), "test");
    ASSERT_EQ(code.entries.size(), 1u);
    code.entries[0].name = a.kernels[i].entry;
    kernels.store(a.kernels[i].hash, serialize(code));
    ++exchanged;
  }
  ASSERT_EQ(exchanged, 1);
  fs::remove_all(directory.directory() / "verdicts");
}

std::string refusal_of(const Function& f) {
  try {
    compiled(f);
  } catch (const UserError& e) {
    return e.what();
  }
  return "nothing was refused";
}

TEST(Verification, OfAKernelNamesTheNode) {
  EmptyCache cache;
  const auto build = [](const Op& op) {
    Function f;
    Value x = f.add_param(f32({100}), "x");
    OriginScope scope(f.graph(), Origin{12, "act", "Exp"});
    f.add_result(op(x), "y");
    return f;
  };
  exchange_code(cache, build(ops::exp), build(ops::neg));
  const std::string message = refusal_of(build(ops::exp));
  expect_contains(message, "node 12 'act' (Exp)");
  expect_contains(message, "no candidate that computes it correctly");
  expect_contains(message, "differs from the reference");
}

TEST(Verification, OfAKernelBuiltInCppNamesTheLine) {
  EmptyCache cache;
  int line = 0;
  const auto build = [&](const Op& op) {
    Function f;
    f.graph().record_source(true);
    Value x = f.add_param(f32({100}), "x");
    line = __LINE__ + 1;
    f.add_result(op(x), "y");
    return f;
  };
  exchange_code(cache, build(ops::exp), build(ops::neg));
  expect_contains(refusal_of(build(ops::exp)), cat("fault_test.cpp:", line));
}

// The kernel is so large that only some of its chunks are run.
TEST(Verification, OfALargeKernelFindsWhatIsWrong) {
  EmptyCache cache;
  const auto build = [](const Op& op) {
    Function f;
    Value x = f.add_param(f32({1, 72, 72, 64}), "x");
    Value w = constant(f.graph(), sample_array(f32({3, 3, 64, 64}), {}, Fill::random, 1));
    Value y = ops::conv(std::vector<Value>{x, w}, {{"strides", Dims{1, 1}},
                                                   {"dilations", Dims{1, 1}},
                                                   {"groups", 1},
                                                   {"pads_low", Dims{1, 1}},
                                                   {"pads_high", Dims{1, 1}},
                                                   {"channels_last", 1}});
    f.add_result(op(y), "y");
    return f;
  };
  const auto chosen = [&](const Op& op) {
    return compiled(build(op)).main().variants[0].groups.at(0);
  };
  EXPECT_EQ(chosen(ops::neg).chosen, "generated");
  exchange_code(cache, build(ops::neg), build(ops::tanh));
  const GroupRecord group = chosen(ops::neg);
  EXPECT_EQ(group.chosen, "nest");
  expect_contains(group.candidates()[0].refused, "differs from the reference");
}

// ---- wrong sizes, found only at run time

std::string refusal_of_run(const Function& f, std::vector<std::int64_t> a,
                           std::vector<std::int64_t> b) {
  const std::unique_ptr<Session> session = session_of(std::make_shared<const Plan>(compiled(f)));
  try {
    session->run(std::vector<Array>{Array::zeros(DType::f32, std::move(a)),
                                    Array::zeros(DType::f32, std::move(b))});
  } catch (const UserError& e) {
    return e.what();
  }
  return "nothing was refused";
}

// x[n, 3] flattened + y[m]: 3 n must equal m.
Function sum_of(std::optional<Origin> origin, int* line = nullptr) {
  Function f;
  f.graph().record_source(line != nullptr);
  const Dim n = Dim::symbol("n", 1, 100), m = Dim::symbol("m", 1, 400);
  Value x = f.add_param(f32({n, 3}), "x"), y = f.add_param(f32({m}), "y"), flat = flatten(x);
  OriginScope scope(f.graph(), origin ? f.graph().origin_list({*origin}) : 0);
  if (line) *line = __LINE__ + 1;
  f.add_result(ops::add(flat, y), "z");
  return f;
}

// ---- what a refusal leaves behind

// A wrong rule for every operation of one kind.
Function tanh_left_out(const Function& f, RuleLog*) {
  return transform(f, [&](NodeId n, Copier& copy, Function&) -> Values {
    const Value v(&f.graph(), n);
    return v.is(ops::tanh) ? Values{copy(v.operand(0))} : Values{};
  });
}

CompileOptions without_tanh() {
  CompileOptions options;
  options.strategy = "cpu";
  options.passes.list = list_with({"fault", "leaves tanh out", tanh_left_out});
  return options;
}

Function several_operations() {
  Function f;
  const Dim n = Dim::symbol("n", 1, 100);
  Value x = f.add_param(f32({n, 6}), "x"), y = f.add_param(f32({n, 6}), "y");
  Value z = ops::relu(ops::add(x, y));
  z = ops::mul(ops::tanh(z), y);
  f.add_result(ops::softmax(ops::add(z, ops::exp(x)), {{"axis", 1}}), "s");
  f.add_result(ops::neg(x), "t");
  return f;
}

TEST(Evidence, IsReducedToTheOperationThatIsWrong) {
  const Evidence e = evidence_of(several_operations(), {{{"n", 5}}}, without_tanh());
  EXPECT_NE(e.fault, "");
  std::vector<const Op*> ops;
  for (NodeId n : live_nodes(e.found.function))
    if (e.found.function.graph().op(n).kind != OpKind::leaf)
      ops.push_back(&e.found.function.graph().op(n));
  EXPECT_EQ(ops, std::vector<const Op*>{&ops::tanh}) << print(e.found.function);
  // It can also be read back from a file's text.
  EXPECT_EQ(fault_of(parse_case(case_text(e.found, e.fault)), without_tanh()), e.fault);
}

TEST(Evidence, OfWhatIsRightIsTheWholeFunction) {
  const Evidence e = evidence_of(several_operations(), {{{"n", 5}}}, {.strategy = "cpu"});
  EXPECT_EQ(e.fault, "");
  EXPECT_EQ(print(e.found.function), print(several_operations()));
}

TEST(Evidence, IsAskedForWhenAStrategyIsRefused) {
  EmptyCache cache;
  std::vector<std::string> told;
  OptimizeRequest request;
  request.compile = without_tanh();
  request.strategies = {"cpu", "ref"};
  request.on_refusal = [&](const Refusal& r) {
    told.emplace_back(r.strategy);
    EXPECT_NE(r.message.find("differs from the reference"), std::string::npos) << r.message;
    EXPECT_FALSE(r.sizes.empty());
    EXPECT_EQ(r.inputs.size(), 2u);
  };
  EXPECT_THROW(optimize({"built", {{{}, several_operations()}}, {}}, request), UserError);
  EXPECT_EQ(told, std::vector<std::string>{"cpu"});
}

// ---- inputs that cannot be made up

// A square plus 17 is more than 3.
Function accepts_nothing() {
  Function f;
  const Dim n = Dim::symbol("n", 1, 64);
  const Value x = f.add_param(f32({n, 6}), "x"), k = f.add_param(i64({}), "k");
  require_within(k * k + integer_like(k, 17), 0, 3, "k k + 17");
  f.add_result(ops::tanh(ops::add(x, broadcast_to(cast_to(k, DType::f32), x.shape()))), "y");
  return f;
}

TEST(NoInputs, StillGiveAPlanOfVerifiedKernels) {
  EmptyCache cache;
  OptimizeRequest request;
  request.compile.verification = Verification::model;
  request.rounds = 1;
  const Source source = {"built", {{{}, accepts_nothing()}}, {}};
  const Optimized out = optimize(source, request);
  EXPECT_NE(out.not_run.find("k k + 17"), std::string::npos) << out.not_run;
  EXPECT_EQ(out.tried.left_out, out.not_run);
  EXPECT_TRUE(out.tried.inputs.empty());
  EXPECT_GT(out.tried.kernels + out.tried.kernels_before, 0);
  for (const StrategyRecord& r : out.plan.main().strategies)
    EXPECT_TRUE(r.failure.empty() || r.failure.starts_with("skipped")) << r.name << r.failure;
  const auto chosen = std::ranges::find(out.plan.main().strategies, true, &StrategyRecord::chosen);
  ASSERT_NE(chosen, out.plan.main().strategies.end());
  EXPECT_EQ(chosen->name, "auto");
  for (const SelfTest& t : out.plan.main().self_tests) EXPECT_NE(t.missing, "");
}

// ---- sizes

TEST(WrongSizes, NameTheNodeAndWhatMustBeEqual) {
  EmptyCache cache;
  const Function f = sum_of(Origin{7, "join", "Add"});
  EXPECT_EQ(refusal_of_run(f, {4, 3}, {12}), "nothing was refused");
  const std::string message = refusal_of_run(f, {4, 3}, {13});
  expect_contains(message, "node 7 'join' (Add)");
  expect_contains(message, "(3*n) is 12 and m is 13");
}

TEST(WrongSizes, NameTheLineOfCpp) {
  EmptyCache cache;
  int line = 0;
  const std::string message = refusal_of_run(sum_of(std::nullopt, &line), {4, 3}, {13});
  expect_contains(message, cat("fault_test.cpp:", line));
}

// The compiler replaces two symbols that must be equal with one.
TEST(WrongSizes, OfTwoInputsNameBoth) {
  EmptyCache cache;
  Function f;
  const Dim n = Dim::symbol("n", 1, 100), m = Dim::symbol("m", 1, 100);
  Value x = f.add_param(f32({n}), "x"), y = f.add_param(f32({m}), "y");
  f.add_result(ops::add(x, y), "z");
  EXPECT_EQ(refusal_of_run(f, {4}, {4}), "nothing was refused");
  expect_contains(refusal_of_run(f, {4}, {5}), "is 4 in input 'x' and 5 in input 'y'");
}

TEST(WrongSizes, OfARealModelNameTheInputAndTheAxis) {
  EmptyCache cache;
  const std::unique_ptr<Session> session = session_of(std::make_shared<const Plan>(
      compile(model_source("ultraface_rfb_320"), {.strategy = "cpu"})));
  try {
    session->run(std::vector<Array>{Array::zeros(DType::f32, {1, 3, 240, 321})});
    FAIL();
  } catch (const UserError& e) {
    expect_contains(e.what(), "input 'input': axis 3 is 321, expected 320");
  }
}

}  // namespace
}  // namespace hone
