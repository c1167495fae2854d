// Results that reuse the memory of their operands.
#include "kernel/in_place.h"

#include "simulate.h"

namespace hone {
namespace {

using Pairs = std::vector<std::pair<int, int>>;

TEST(InPlace, ElementwisePathsOnly) {
  Function f;
  Value x = f.add_param(f32({4, 6}), "x"), y = f.add_param(f32({4, 6}), "y"),
        z = f.add_param(f32({6}), "z"), w = f.add_param(f32({4, 6}), "w");
  Value rows = ops::softmax(w, {{"axis", 1}});
  f.add_result(x * ops::exp(y) + broadcast_to(z, x.shape()) + rows);
  EXPECT_EQ(in_place_pairs(f), (Pairs{{0, 0}, {0, 1}}));
}

TEST(InPlace, NotWhenReadAtOtherPlaces) {
  Function f;
  Value x = f.add_param(f32({6, 6}), "x");
  f.add_result(x + transpose_matrix(x));
  EXPECT_EQ(in_place_pairs(f), Pairs{});
}

TEST(InPlace, EitherOfTwoResultsOfOnePass) {
  Function f;
  Value x = f.add_param(f32({6}), "x");
  f.add_result(ops::exp(x));
  f.add_result(ops::neg(x));
  EXPECT_EQ(in_place_pairs(f), (Pairs{{0, 0}, {1, 0}}));
}

TEST(InPlace, NotWhenAnotherPassReadsIt) {
  Function f;
  Value x = f.add_param(f32({6, 4}), "x"), y = f.add_param(f32({6, 4}), "y");
  f.add_result(ops::exp(x));
  f.add_result(ops::neg(x));
  f.add_result(reduce_axes(ops::reduce_sum, y, {1}));
  EXPECT_EQ(in_place_pairs(f), Pairs{});
}

// Kernels store element i of the results in their order, so the last may overwrite what all read.
TEST(InPlace, TheLastOfTheResultsOfOneContraction) {
  Function f;
  Value a = f.add_param(f32({6, 6}), "a"), m = f.add_param(f32({6, 6}), "m");
  Value sum = dot_general(a, a, {}, {{0, 0}});
  f.add_result(ops::exp(m) * sum);
  f.add_result(m + sum);
  EXPECT_EQ(in_place_pairs(f), (Pairs{{1, 1}}));
  Function g = f;  // another position of m is read for the same sum
  g.add_result(m + transpose_matrix(sum));
  EXPECT_EQ(in_place_pairs(g), Pairs{});
  Function h = f;  // not made of the sum: it may be computed by a loop of its own
  h.add_result(ops::neg(m));
  EXPECT_EQ(in_place_pairs(h), Pairs{});
  Function two = f;
  two.add_result(m + dot_general(a, m, {}, {{0, 0}}));
  EXPECT_EQ(in_place_pairs(two), Pairs{});
}

// The gradient is a contraction, and the steps of Adam are computed with it: nothing is copied.
TEST(InPlace, MomentsAndParametersOfAContraction) {
  Function f;
  Value x = f.add_param(f32({40, 37}), "x"), dy = f.add_param(f32({40, 65}), "dy");
  const Type t = f32({37, 65});
  Value p = f.add_param(t, "p", true), m = f.add_param(t, "m", true), v = f.add_param(t, "v", true);
  Value g = dot_general(x, dy, {}, {{0, 0}});
  Value next_m = m * 0.9 + g * 0.1, next_v = v * 0.99 + g * g * 0.01;
  f.add_result(next_m, "m", 3);
  f.add_result(next_v, "v", 4);
  f.add_result(p * 0.999 - next_m / (ops::sqrt(next_v) + 1e-3) * 0.01, "p", 2);
  Simulated s = simulate(f);
  EXPECT_EQ(s.plan.main().result_alias, (std::vector<std::int32_t>{3, 4, 2}));
  EXPECT_EQ(s.copies, 0);
}

TEST(InPlace, EqualBytesOfAnotherDtype) {
  Function f;
  Value x = f.add_param(f32({6}), "x");
  f.add_result(cast_to(x, DType::i32));
  EXPECT_EQ(in_place_pairs(f), (Pairs{{0, 0}}));
  Function g;
  Value y = g.add_param(f32({6}), "y");
  g.add_result(cast_to(y, DType::f16));
  EXPECT_EQ(in_place_pairs(g), Pairs{});
}

// One buffer holds the whole chain of rows, and the last one is stored in the result.
TEST(InPlace, ChainsStayInOneBuffer) {
  Function f;
  Value v = f.add_param(f32({64, 64}), "x");
  for (int i = 0; i < 6; ++i) {
    Value rows = reduce_axes(ops::reduce_max, v, {1}, true);
    v = ops::exp(v - broadcast_to(rows, v.shape())) * 0.5;
  }
  f.add_result(v);
  Simulated s = simulate(f);
  std::int64_t whole = 64 * 64 * 4, rows = 64 * 4;
  EXPECT_EQ(s.variant.devices[0].arena_bytes, Dim(whole + rows));
  ScheduleOptions apart;
  apart.in_place = false;
  EXPECT_EQ(simulate(f, apart).variant.devices[0].arena_bytes, Dim(2 * whole + rows));
}

Value update(Value w, Value g) { return w - g * 0.1; }

TEST(InPlace, DonatedParametersAreUpdated) {
  Function f;
  Value w = f.add_param(f32({8}), "w", true), g = f.add_param(f32({8}), "g");
  f.add_result(update(w, g), "w");
  f.add_result(ops::sqrt(reduce_axes(ops::reduce_sum, g * g, {0})), "norm");
  Simulated s = simulate(f);
  EXPECT_EQ(s.plan.main().result_alias, (std::vector<std::int32_t>{0, -1}));
  EXPECT_EQ(s.copies, 0);
}

// The old value is read after the new one would be written.
TEST(InPlace, NotWhileTheOldValueIsRead) {
  Function f;
  Value w = f.add_param(f32({8, 8}), "w", true), g = f.add_param(f32({8, 8}), "g");
  Value next = update(w, g);
  f.add_result(next, "w");
  f.add_result(dot_general(next, w, {}, {{1, 0}}));
  EXPECT_EQ(simulate(f).plan.main().result_alias, (std::vector<std::int32_t>{-1, -1}));
}

TEST(InPlace, OtherDonatedMemoryWillDo) {
  Function f;
  Value a = f.add_param(f32({8}), "a", true), b = f.add_param(f32({8}), "b", true);
  Value sum = reduce_axes(ops::reduce_sum, a, {0});
  f.add_result(ops::exp(b));
  f.add_result(ops::neg(b) + broadcast_to(sum, b.shape()));
  Simulated s = simulate(f);
  for (std::int32_t p : s.plan.main().result_alias) EXPECT_LE(p, 1);
}

TEST(InPlace, BuffersOfLoopsAreNotGivenAway) {
  Function f;
  Type t = f32({16}), n = i64({});
  Value x = f.add_param(t, "x"), end = f.add_param(n, "end");
  auto go = std::make_shared<Function>(), next = std::make_shared<Function>();
  for (Function* g : {go.get(), next.get()}) {
    for (const Type& p : {n, t, n, t}) g->add_param(p, "p");
  }
  go->add_result(ops::lt(go->param(0), go->param(2)));
  next->add_result(next->param(0) + integer_like(next->param(0), 1));
  next->add_result(ops::tanh(next->param(1) + next->param(3)));
  Value zero = constant(f.graph(), Array::scalar_int(0, DType::i64)), e = ops::exp(x);
  Value loop = ops::while_loop(Values{zero, e, end, ops::neg(e)},
                               {{"condition", FunctionRef(go)}, {"body", FunctionRef(next)}});
  f.add_result(loop.result(1) + e);
  for (unsigned seed = 1; seed < 5; ++seed) simulate(f, {}, {}, seed);
}

}  // namespace
}  // namespace hone
