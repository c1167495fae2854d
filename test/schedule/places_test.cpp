// Placement of values: views, windows of a concat, the caller's results.
#include "simulate.h"

namespace hone {
namespace {

TEST(Places, ConcatOperandsAreMadeInTheirWindows) {
  Function f;
  Value x = f.add_param(f32({4, 6}), "x"), y = f.add_param(f32({4, 6}), "y");
  const Value parts[] = {ops::exp(x), dot_general(x, y, {}, {{1, 1}}), ops::neg(y)};
  Value all = concat_values(parts, 1);
  f.add_result(ops::softmax(all, {{"axis", 1}}));
  Simulated s = simulate(f);
  EXPECT_EQ(s.launches, 4);
  EXPECT_EQ(s.copies, 0);
  EXPECT_EQ(s.variant.devices[0].arena_bytes, Dim(256));
}

TEST(Places, ConcatInConcatIsOneBuffer) {
  Function f;
  Value x = f.add_param(f32({2, 8}), "x");
  const Value inner[] = {ops::exp(x), ops::neg(x)};
  const Value outer[] = {ops::tanh(x), concat_values(inner, 0)};
  f.add_result(concat_values(outer, 0));
  Simulated s = simulate(f);
  EXPECT_EQ(s.copies, 0);
  EXPECT_EQ(s.variant.devices[0].arena_bytes, Dim(0));
}

TEST(Places, WhatHasAPlaceAlreadyIsCopied) {
  Function f;
  Value x = f.add_param(f32({2, 8}), "x"), e = ops::exp(x);
  const Value twice[] = {e, e};
  f.add_result(concat_values(twice, 1));
  f.add_result(e);
  EXPECT_EQ(simulate(f).copies, 2);
}

// A window of columns cannot be read as one row.
TEST(Places, NoWindowWhereAReshapeNeedsOneRun) {
  Function f;
  Value x = f.add_param(f32({4, 6}), "x"), e = ops::exp(x);
  const Value parts[] = {e, ops::neg(x)};
  f.add_result(concat_values(parts, 1));
  f.add_result(reduce_axes(ops::reduce_sum, flatten(e), {0}));
  Simulated s = simulate(f);
  EXPECT_EQ(s.copies, 1);
}

TEST(Places, ResultsAreMadeThroughViews) {
  Function f;
  Value x = f.add_param(f32({4, 6}), "x");
  f.add_result(reshape_to(ops::exp(x), {24}));
  f.add_result(transpose_matrix(ops::neg(x)));
  Simulated s = simulate(f);
  EXPECT_EQ(s.copies, 0);
  EXPECT_EQ(s.variant.devices[0].arena_bytes, Dim(0));
}

// Two heads of an attention, concatenated for the product after it.
Function heads(bool are_read_twice) {
  Function f;
  const Value q = f.add_param(f32({1, 2, 8, 4}), "q"), k = f.add_param(f32({1, 2, 6, 4}), "k"),
              v = f.add_param(f32({1, 2, 6, 4}), "v"), w = f.add_param(f32({8, 3}), "w");
  const Value y = ops::attention(Values{q, k, v}, {{"scale", 0.5}});
  const Value rows = reshape_to(transpose_by(y, Axes{0, 2, 1, 3}), {8, 8});
  f.add_result(dot_general(rows, w, {}, {{1, 0}}));
  if (are_read_twice) f.add_result(reduce_axes(ops::reduce_sum, y, {2}));
  return f;
}

TEST(Places, HeadsAreMadeSideBySide) {
  Simulated s = simulate(heads(false));
  EXPECT_EQ(s.launches, 2);
  EXPECT_EQ(s.copies, 0);
  EXPECT_GT(simulate(heads(true)).launches, 3) << "others want the heads as they are";
}

TEST(Places, BodiesGetDenseArguments) {
  Function f;
  Value c = f.add_param(b1({}), "c"), x = f.add_param(f32({4, 6}), "x");
  auto body = [](bool yes) {
    auto g = std::make_shared<Function>();
    Value p = g->add_param(f32({4, 3}), "p");
    g->add_result(yes ? ops::exp(flatten(p)) : flatten(p));
    return FunctionRef(g);
  };
  f.add_result(ops::if_else(Values{c, slice_axis(ops::exp(x), 1, 2, 3)},
                            {{"then", body(true)}, {"else", body(false)}}));
  for (unsigned seed = 1; seed < 4; ++seed) simulate(f, {}, {}, seed);
}

}  // namespace
}  // namespace hone
