// Handwritten result types: the interpreter uses the inferred sizes, so it cannot find wrong ones.
#include <gtest/gtest.h>

#include "ir/function.h"
#include "ops/common.h"

namespace hone {
namespace {

Type result(const Op& op, const std::vector<Type>& types, Attrs attrs = {}) {
  Function f;
  Values operands;
  for (const Type& t : types) operands.push_back(f.add_param(t, "x"));
  return f.graph().intern(op, operands, std::move(attrs)).type();
}

Attrs sliding(Dims window, Dims strides, Dims dilations, Dims low, Dims high) {
  return {{"kind", std::string("max")}, {"window", window}, {"strides", strides},
          {"dilations", dilations},     {"pads_low", low},  {"pads_high", high}};
}

Attrs conv(Dims strides, Dims dilations, Dims low, Dims high, int groups, int last) {
  return {{"strides", strides}, {"dilations", dilations}, {"pads_low", low},
          {"pads_high", high},  {"groups", groups},       {"channels_last", last}};
}

TEST(OpTypes, Windows) {
  EXPECT_EQ(result(ops::reduce_window, {f32({10})}, sliding({3}, {1}, {1}, {0}, {0})), f32({8}));
  EXPECT_EQ(result(ops::reduce_window, {f32({10})}, sliding({3}, {2}, {1}, {0}, {0})), f32({4}));
  EXPECT_EQ(result(ops::reduce_window, {f32({10})}, sliding({3}, {1}, {2}, {0}, {0})), f32({6}));
  EXPECT_EQ(result(ops::reduce_window, {f32({10})}, sliding({3}, {2}, {2}, {1}, {2})), f32({5}));
  EXPECT_EQ(result(ops::reduce_window, {f32({2})}, sliding({3}, {1}, {1}, {0}, {0})), f32({0}));
  EXPECT_EQ(result(ops::reduce_window, {f32({0})}, sliding({1}, {2}, {1}, {0}, {0})), f32({0}));
  Dim n = Dim::symbol("n", 4, 100);
  EXPECT_EQ(result(ops::reduce_window, {f32({n})}, sliding({3}, {2}, {1}, {1}, {0})),
            f32({floor_div(n - Dim(2), 2) + Dim(1)}));
}

TEST(OpTypes, Convolutions) {
  EXPECT_EQ(result(ops::conv, {f32({2, 4, 9, 8}), f32({6, 2, 3, 2})},
                   conv({2, 1}, {1, 3}, {1, 0}, {0, 1}, 2, 0)),
            f32({2, 6, 4, 6}));
  EXPECT_EQ(result(ops::conv, {f16({2, 9, 4}), f16({3, 4, 5})}, conv({1}, {1}, {1}, {1}, 1, 1)),
            f16({2, 9, 5}));
}

TEST(OpTypes, Contractions) {
  EXPECT_EQ(result(ops::dot, {f32({2, 3, 4, 5}), f32({5, 6, 2})},
                   {{"batch", Dims{0, 2}}, {"contract", Dims{3, 0}}}),
            f32({2, 3, 4, 6}));
  EXPECT_EQ(result(ops::matmul, {f32({7, 1, 2, 3}), f32({5, 3, 4})}), f32({7, 5, 2, 4}));
  EXPECT_EQ(result(ops::matmul, {f32({3}), f32({3})}), f32({}));
  EXPECT_EQ(result(ops::matmul, {f32({5, 2, 3}), f32({3})}), f32({5, 2}));
}

TEST(OpTypes, Movement) {
  EXPECT_EQ(result(ops::transpose, {f32({2, 3, 4})}, {{"perm", Dims{1, 2, 0}}}), f32({3, 4, 2}));
  EXPECT_EQ(result(ops::pad, {f32({2, 3}), f32({})}, {{"low", Dims{1, 0}}, {"high", Dims{2, 4}}}),
            f32({5, 7}));
  EXPECT_EQ(result(ops::concat, {f32({2, 3}), f32({2, 4})}, {{"axis", 1}}), f32({2, 7}));
  EXPECT_EQ(result(ops::gather, {f32({2, 3, 4}), i64({5, 6})}, {{"axis", 1}}), f32({2, 5, 6, 4}));
  EXPECT_EQ(result(ops::tile, {f32({2, 3})}, {{"count", Dims{3, 2}}}), f32({6, 6}));
  EXPECT_EQ(
      result(ops::one_hot, {i64({2, 3}), f32({}), f32({})}, {{"axis", 1}, {"count", Dims{4}}}),
      f32({2, 4, 3}));
  EXPECT_EQ(result(ops::gather_nd, {f32({2, 3, 4}), i64({2, 5, 1})}, {{"batch", 1}}),
            f32({2, 5, 4}));
}

TEST(OpTypes, Reductions) {
  EXPECT_EQ(result(ops::reduce_sum, {f16({2, 3, 4})}, {{"axes", Dims{0, 2}}}), f16({3}));
  EXPECT_EQ(result(ops::argmax, {f32({2, 3})}, {{"axis", 0}, {"dtype", DType::i32}}), i32({3}));
  EXPECT_EQ(result(ops::eq, {f32({2}), f32({2})}), b1({2}));
}

// If sizes are not provably equal, the result takes the number, and a check is added for run time.
TEST(OpTypes, UnprovedSizesBecomeChecks) {
  Dim n = Dim::symbol("n", 1, 100), m = Dim::symbol("m", 1, 100);
  Function f;
  Value a = f.add_param(f32({n, 4}), "a"), b = f.add_param(f32({5, m}), "b");
  EXPECT_EQ(ops::add(a, b).type(), f32({5, 4}));
  ASSERT_EQ(f.graph().checks().size(), 2u);
  EXPECT_EQ(f.graph().checks()[0].message,
            "add: sizes at axis 0 differ: n against 5 in (f32[n,4], f32[5,m]); make them equal");
  slice_axis(a, 0, 2, 3);
  ASSERT_EQ(f.graph().checks().size(), 3u);
  EXPECT_EQ(f.graph().checks()[2].b, n);
}

}  // namespace
}  // namespace hone
