#include "schedule/schedule.h"

#include "simulate.h"

namespace hone {
namespace {

ScheduleOptions one_op() {
  ScheduleOptions o;
  o.one_op_groups = true;
  return o;
}

Array numbers(std::vector<std::int64_t> dims) {
  Array a = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, static_cast<double>(i % 7) - 3);
  return a;
}

TEST(Schedule, ElementwiseChain) {
  Function f;
  Value x = f.add_param(f32({5, 7}), "x");
  f.add_result(ops::exp(x * 2.0) + x);
  Simulated s = simulate(f, one_op());
  EXPECT_EQ(s.launches, 3);
  EXPECT_EQ(s.copies, 0);
}

TEST(Schedule, ParamsConstantsAndRepeatsAsResultsAreCopied) {
  Function f;
  Value x = f.add_param(f32({2, 3}), "x"), w = constant(f.graph(), numbers({4}));
  f.add_result(x);
  f.add_result(w);
  f.add_result(reshape_to(x, {3, 2}));
  Value y = ops::exp(x);
  f.add_result(y);
  f.add_result(y);
  f.add_result(constant_like(x, 3));
  f.add_result(iota_value(f.graph(), DType::i64, Shape{4}, 0));
  for (bool one : {false, true}) simulate(f, one ? one_op() : ScheduleOptions{});
}

TEST(Schedule, SizesAreValues) {
  Dim n = Dim::symbol("n", 1, 9);
  Function f;
  Value x = f.add_param(f32({n, 3}), "x");
  f.add_result(x + size_value(f.graph(), n, DType::f32));
  f.add_result(dims_value(f.graph(), {n, Dim(3), n * Dim(2)}, DType::i64, {3}));
  for (std::int64_t k : {1, 4, 9}) simulate(f, one_op(), {{"n", k}});
}

TEST(Schedule, WeightsAloneArePrepared) {
  Function f;
  Value x = f.add_param(f32({4}), "x"), w = constant(f.graph(), numbers({4}));
  f.add_result(x + ops::exp(w * 2.0));
  Simulated s = simulate(f, one_op());
  EXPECT_EQ(s.variant.prepare.size(), 2u);
  EXPECT_EQ(s.variant.steps.size(), 1u);
  s.plan.main().variants.push_back(s.variant);
  drop_unread(s.plan);
  EXPECT_EQ(s.plan.weights.size(), 0u);
  EXPECT_EQ(s.plan.prepared.size(), 1u);
  EXPECT_TRUE(s.plan.main().variants[0].prepare.empty());
}

TEST(Schedule, ReshapeSliceAndTransposeAreViews) {
  Function f;
  Value x = f.add_param(f32({4, 6}), "x");
  Value y = ops::exp(x);
  f.add_result(ops::neg(reshape_to(y, {2, 12})));
  f.add_result(ops::neg(transpose_matrix(y)));
  f.add_result(ops::neg(slice_axis(y, 1, 1, 2, 2)));
  f.add_result(ops::neg(reshape_to(slice_axis(y, 0, 1, 2), {12})));
  Simulated s = simulate(f, one_op());
  EXPECT_EQ(s.launches, 5);
  EXPECT_EQ(s.copies, 0);
}

FunctionRef body(std::vector<Type> params, const std::function<Values(Function&)>& make) {
  auto f = std::make_shared<Function>();
  for (std::size_t i = 0; i < params.size(); ++i) f->add_param(params[i], cat("p", i));
  for (const Value& v : make(*f)) f->add_result(v);
  return f;
}

TEST(Schedule, BranchesWriteTheSameResults) {
  Function f;
  Type t = f32({3});
  Value c = f.add_param(b1({}), "c"), x = f.add_param(t, "x"), y = f.add_param(t, "y");
  Value r = ops::if_else(
      Values{c, x, y},
      {{"then",
        body({t, t}, [](Function& g) { return Values{g.param(0) + g.param(1), g.param(1)}; })},
       {"else", body({t, t}, [](Function& g) {
          return Values{ops::exp(g.param(0)), constant_like(g.param(0), 7)};
        })}});
  f.add_result(r.result(0) * r.result(1));
  for (unsigned seed = 1; seed < 5; ++seed) simulate(f, one_op(), {}, seed);
}

TEST(Schedule, LoopsCarryState) {
  Function f;
  Type t = f32({3}), n = i64({});
  Value x = f.add_param(t, "x"), end = f.add_param(n, "end");
  Value zero = constant(f.graph(), Array::scalar_int(0, DType::i64));
  // (count, x, y, end): swaps x and y, so that order matters.
  FunctionRef go =
      body({n, t, t, n}, [](Function& g) { return Values{ops::lt(g.param(0), g.param(3))}; });
  FunctionRef next = body({n, t, t, n}, [](Function& g) {
    return Values{g.param(0) + integer_like(g.param(0), 1), g.param(2) + 1.0, g.param(1)};
  });
  Value loop =
      ops::while_loop(Values{zero, x, ops::exp(x), end}, {{"condition", go}, {"body", next}});
  f.add_result(loop.result(1) - loop.result(2));
  f.add_result(loop.result(0));
  for (unsigned seed = 1; seed < 6; ++seed) simulate(f, one_op(), {}, seed);
}

// A call gives a value to each symbol of a body: the size of the operand that it passes.
TEST(Schedule, BodiesTakeTheSizesOfTheirArguments) {
  Dim n = Dim::symbol("n", 1, 8), m = Dim::symbol("m", 1, 64);
  Function f;
  Value c = f.add_param(b1({}), "c"), x = f.add_param(f32({n, 2}), "x");
  Type t = f32({m});
  FunctionRef yes = body(
      {t}, [&](Function& g) { return Values{g.param(0) + size_value(g.graph(), m, DType::f32)}; });
  FunctionRef no = body({t}, [&](Function& g) { return Values{ops::exp(g.param(0))}; });
  f.add_result(ops::if_else(Values{c, flatten(x)}, {{"then", yes}, {"else", no}}));
  for (unsigned seed = 1; seed < 5; ++seed) simulate(f, one_op(), {{"n", 3}}, seed);
}

TEST(Schedule, RefusalsAreSteps) {
  Function f;
  Type t = f32({3});
  Value c = f.add_param(b1({}), "c"), x = f.add_param(t, "x");
  FunctionRef no = body({t}, [&](Function& g) {
    return Values{g.graph().intern(
        ops::refuse, {},
        {{"message", std::string("not this way")}, {"dtype", DType::f32}, {"shape", Dims{3}}})};
  });
  FunctionRef yes = body({t}, [](Function& g) { return Values{ops::exp(g.param(0))}; });
  f.add_result(ops::if_else(Values{c, x}, {{"then", yes}, {"else", no}}));
  Plan plan;
  Schedule s = schedule(f, one_op());
  Variant v = PlanBuilder(plan).add(s, whole_groups(s));
  ASSERT_EQ(v.steps.size(), 1u);
  ASSERT_FALSE(v.steps[0].otherwise.empty());
  EXPECT_EQ(v.steps[0].otherwise[0].kind, Step::Kind::refuse);
  EXPECT_EQ(v.steps[0].otherwise[0].name, "not this way");
}

TEST(Schedule, EqualGroupsShareASpec) {
  Function f;
  Value x = f.add_param(f32({5}), "x"), y = f.add_param(f32({5}), "y"),
        z = f.add_param(f32({6}), "z");
  Value c = f.add_param(b1({}), "c");
  for (Value v : {x, y, z}) f.add_result(ops::exp(v));
  // Functions of other graphs match, too; those with other types or layouts do not.
  FunctionRef same = body({f32({5})}, [](Function& g) { return Values{ops::exp(g.param(0))}; });
  FunctionRef other = body({f32({5})}, [](Function& g) { return Values{ops::tanh(g.param(0))}; });
  f.add_result(ops::if_else(Values{c, x}, {{"then", same}, {"else", other}}));
  Schedule s = schedule(f, one_op());
  ASSERT_EQ(s.groups.size(), 5u);
  EXPECT_EQ(s.specs.size(), 3u);
  EXPECT_EQ(s.groups[0].spec, s.groups[1].spec);
  EXPECT_NE(s.groups[0].spec, s.groups[2].spec);
  EXPECT_EQ(s.groups[0].spec, s.groups[3].spec);
  EXPECT_NE(s.groups[0].spec, s.groups[4].spec);
}

TEST(Schedule, OneFunctionOnTwoLayoutsIsTwoSpecs) {
  Function f;
  Value x = f.add_param(f32({4, 6}), "x"), y = f.add_param(f32({6, 4}), "y");
  f.add_result(ops::exp(y));
  f.add_result(ops::exp(ops::transpose(x, {{"perm", Dims{1, 0}}})));
  Schedule s = schedule(f, one_op());
  ASSERT_EQ(s.groups.size(), 2u);
  ASSERT_EQ(s.specs.size(), 2u);
  EXPECT_TRUE(same_structure(s.specs[0].spec.function, s.specs[1].spec.function));
  EXPECT_NE(s.specs[0].spec.param_strides, s.specs[1].spec.param_strides);
}

}  // namespace
}  // namespace hone
