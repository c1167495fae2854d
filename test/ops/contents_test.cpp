// Sizes flow through integer operations, as in imported chains of Shape, Gather, Concat, Reshape.
#include <gtest/gtest.h>

#include "ir/function.h"
#include "ops/common.h"

namespace hone {
namespace {

struct Contents : testing::Test {
  Function f;
  Dim n = Dim::symbol("n", 1, 1000), m = Dim::symbol("m", 2, 50);

  Value sizes(const Dims& dims, DType t = DType::i64) {
    return dims_value(f.graph(), dims, t, {static_cast<std::int64_t>(dims.size())});
  }
  Value number(std::int64_t x, DType t = DType::i64) {
    return constant(f.graph(), Array::scalar_int(x, t));
  }
};

TEST_F(Contents, FollowArithmetic) {
  Value a = sizes({n, 4}), b = sizes({3, m});
  EXPECT_EQ(contents_of(ops::add(a, b)), (Dims{n + Dim(3), m + Dim(4)}));
  EXPECT_EQ(contents_of(ops::sub(a, b)), (Dims{n - Dim(3), Dim(4) - m}));
  EXPECT_EQ(contents_of(ops::mul(a, b)), (Dims{n * Dim(3), m * Dim(4)}));
  EXPECT_EQ(contents_of(ops::div(a, b)), (Dims{floor_div(n, 3), floor_div(4, m)}));
  EXPECT_EQ(contents_of(ops::rem(a, b)), (Dims{mod(n, 3), mod(4, m)}));
  EXPECT_EQ(contents_of(ops::maximum(a, b)), (Dims{max(n, 3), max(4, m)}));
  EXPECT_EQ(contents_of(ops::minimum(a, b)), (Dims{min(n, 3), min(4, m)}));
  EXPECT_EQ(contents_of(ops::neg(a)), (Dims{Dim(0) - n, -4}));
  EXPECT_EQ(contents_of(ops::mod(a, b)), (Dims{mod(n, 3), mod(4, m)}));
  EXPECT_EQ(contents_of(ops::clip(a, sizes({2, 2}), sizes({9, 3}))), (Dims{min(max(n, 2), 9), 3}));
}

TEST_F(Contents, DivideTowardsZero) {
  Value below = ops::neg(sizes({n, 7}));
  EXPECT_EQ(contents_of(ops::div(below, sizes({2, 2}))), (Dims{Dim(0) - floor_div(n, 2), -3}));
  EXPECT_EQ(contents_of(ops::div(sizes({n, 7}), sizes({0, 0}))), std::nullopt);
  EXPECT_EQ(contents_of(ops::div(sizes({7}), sizes({0}))), (Dims{-1}));
}

TEST_F(Contents, FollowComparisonsAndSelect) {
  Value small = ops::lt(sizes({n, n}), sizes({5, 2000}));
  ASSERT_TRUE(contents_of(small));
  EXPECT_EQ((*contents_of(small))[1], Dim(1));
  EXPECT_EQ(contents_of(ops::eq(sizes({n}), sizes({n}))), (Dims{1}));
  EXPECT_EQ(contents_of(ops::eq(sizes({n}), sizes({-1}))), (Dims{0}));
  Value minus_one = sizes({-1, -1}), given = sizes({n, -1});
  Value chosen = ops::select(ops::eq(given, minus_one), sizes({m, m}), given);
  EXPECT_EQ(contents_of(chosen), (Dims{n, m}));
  // Not decidable yet: both stay in the expression.
  auto at = [&](std::int64_t value) {
    return (*contents_of(ops::select(small, sizes({1, 1}), sizes({n, n}))))[0].eval(
        [=](std::string_view) { return value; });
  };
  EXPECT_EQ(at(4), 1);
  EXPECT_EQ(at(5), 5);
}

TEST_F(Contents, FollowLogic) {
  Value is = ops::eq(sizes({n, n, 1}), sizes({4, 1001, 1}));
  Value isnt = ops::bit_not(is);
  EXPECT_EQ((*contents_of(isnt))[1], Dim(1));
  EXPECT_EQ((*contents_of(ops::bit_and(is, isnt)))[2], Dim(0));
  EXPECT_EQ((*contents_of(ops::bit_or(is, isnt)))[2], Dim(1));
  EXPECT_EQ((*contents_of(ops::bit_xor(is, is)))[0], Dim(0));
}

TEST_F(Contents, FollowMovement) {
  Value shape = sizes({n, 3, m, 5});
  EXPECT_EQ(contents_of(slice_axis(shape, 0, 1, 2)), (Dims{3, m}));
  EXPECT_EQ(contents_of(slice_axis(shape, 0, 3, 2, -2)), (Dims{5, 3}));
  EXPECT_EQ(contents_of(ops::gather(Values{shape, number(-2)}, {{"axis", 0}})), (Dims{m}));
  EXPECT_EQ(contents_of(reshape_to(shape, {2, 2})), (Dims{n, 3, m, 5}));
  EXPECT_EQ(contents_of(transpose_matrix(reshape_to(shape, {2, 2}))), (Dims{n, m, 3, 5}));
  EXPECT_EQ(contents_of(reverse_axes(shape, {0})), (Dims{5, m, 3, n}));
  EXPECT_EQ(contents_of(broadcast_to(sizes({n}), {3})), (Dims{n, n, n}));
  EXPECT_EQ(contents_of(pad_with(sizes({n}), number(1), {1}, {0})), (Dims{1, n}));
  EXPECT_EQ(contents_of(ops::tile(sizes({n, m}), {{"count", Dims{2}}})), (Dims{n, m, n, m}));
  const Value parts[] = {sizes({n}), sizes({-1}), sizes({})};
  EXPECT_EQ(contents_of(concat_values(parts, 0)), (Dims{n, -1}));
  Value place = constant(f.graph(), Array::from_ints(std::vector<std::int64_t>{1}));
  EXPECT_EQ(contents_of(ops::dynamic_slice(Values{shape, place}, {{"sizes", Dims{2}}})),
            (Dims{3, m}));
}

TEST_F(Contents, FollowReductions) {
  Value table = reshape_to(sizes({n, 3, m, 5}), {2, 2});
  EXPECT_EQ(contents_of(reduce_axes(ops::reduce_prod, table, {0})), (Dims{n * m, 15}));
  EXPECT_EQ(contents_of(reduce_axes(ops::reduce_sum, table, {0, 1})), (Dims{n + m + Dim(8)}));
  EXPECT_EQ(contents_of(reduce_axes(ops::reduce_max, table, {1})), (Dims{max(n, 3), max(m, 5)}));
  EXPECT_EQ(contents_of(reduce_axes(ops::reduce_min, table, {1})), (Dims{min(n, 3), min(m, 5)}));
  Value holds = ops::eq(sizes({n, 2}), sizes({n, 3}));
  EXPECT_EQ(contents_of(reduce_axes(ops::reduce_and, holds, {0})), (Dims{0}));
  EXPECT_EQ(contents_of(reduce_axes(ops::reduce_or, holds, {0})), (Dims{1}));
}

TEST_F(Contents, FollowCasts) {
  EXPECT_EQ(contents_of(cast_to(sizes({n}), DType::i32)), (Dims{n}));
  EXPECT_EQ(contents_of(cast_to(sizes({n}), DType::i8)), std::nullopt);  // could wrap
  EXPECT_EQ(contents_of(cast_to(sizes({300}), DType::u8)), (Dims{44}));
  EXPECT_EQ(contents_of(cast_to(sizes({n}), DType::b1)), (Dims{1}));
  EXPECT_EQ(cast_to(sizes({n}), DType::f32).op().name, "cast");
}

TEST_F(Contents, NumbersFoldWithTheirOwnWidth) {
  Value most = sizes({INT64_MAX}), one = sizes({1});
  EXPECT_EQ(contents_of(ops::add(most, one)), (Dims{INT64_MIN}));
  EXPECT_EQ(contents_of(ops::mul(sizes({1 << 20}, DType::i32), sizes({1 << 20}, DType::i32))),
            (Dims{0}));
  EXPECT_EQ(contents_of(ops::pow(sizes({2}), sizes({10}))), (Dims{1024}));
  EXPECT_EQ(contents_of(iota_value(f.graph(), DType::i64, {3}, 0)), (Dims{0, 1, 2}));
  // An expression that overflows 64 bits for some size is not a size.
  EXPECT_EQ(contents_of(ops::mul(ops::mul(sizes({n}), most), most)), std::nullopt);
}

TEST_F(Contents, EndAt64Elements) {
  Value many = broadcast_to(sizes({n}), {64});
  EXPECT_TRUE(contents_of(many));
  EXPECT_FALSE(contents_of(broadcast_to(sizes({n}), {65})));
  Value unknown = f.add_param(i64({2}), "x");
  EXPECT_FALSE(contents_of(ops::add(unknown, sizes({n, n}))));
}

}  // namespace
}  // namespace hone
