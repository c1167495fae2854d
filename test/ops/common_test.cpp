// The helpers that build graphs: their results, simplifications and errors.
#include "ops/common.h"

#include <gtest/gtest.h>

#include "ref/evaluate.h"

namespace hone {
namespace {

struct Common : testing::Test {
  Function f;
  Dim n = Dim::symbol("n", 1, 100), m = Dim::symbol("m", 1, 100);
  Value x(const Type& t) { return f.add_param(t, cat("x", f.params().size())); }

  // Evaluates the only result on inputs 0, 1, 2, ...
  std::vector<double> value(Value v) {
    Function g = f;
    g.add_result(v);
    std::vector<Array> inputs;
    for (const Function::Param& p : f.params()) {
      Array a = Array::zeros(p.value.dtype(), p.value.shape().numbers());
      for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, static_cast<double>(i));
      inputs.push_back(a);
    }
    return evaluate_wide(g, inputs, Mode::strict).at(0).reals;
  }
};

using Numbers = std::vector<double>;

TEST_F(Common, OperatorsBroadcastScalarsOnly) {
  Value a = x(f32({2, 3})), s = x(f32({}));
  EXPECT_EQ((a + s).shape(), Shape({2, 3}));
  EXPECT_EQ((s - a).shape(), Shape({2, 3}));
  EXPECT_THROW(a * x(f32({3})), UserError);
  EXPECT_EQ(value(2.0 / (a + 1.0)), (Numbers{2, 1, 2.0f / 3, 0.5, 2.0f / 5, 1.0f / 3}));
}

TEST_F(Common, BroadcastPairFollowsNumpy) {
  auto [a, b] = broadcast_pair(x(f32({2, 1, 3})), x(f32({4, 1})), "test");
  EXPECT_EQ(a.shape(), Shape({2, 4, 3}));
  EXPECT_EQ(b.shape(), Shape({2, 4, 3}));
  EXPECT_EQ(broadcast_shape(f.graph(), Shape{n, 3}, Shape{1}, "test"), (Shape{n, 3}));
  try {
    broadcast_shape(f.graph(), Shape{2, 3}, Shape{4}, "test");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(),
                 "test: shapes [2,3] and [4] do not broadcast: 3 against 4 at axis -1; sizes must "
                 "be equal or 1");
  }
}

TEST_F(Common, BroadcastOfUnprovedSizesRecordsACheck) {
  EXPECT_EQ(broadcast_shape(f.graph(), Shape{n}, Shape{m}, "test"), Shape{m});
  EXPECT_EQ(broadcast_shape(f.graph(), Shape{7}, Shape{m}, "test"), Shape{7});
  EXPECT_EQ(f.graph().checks().size(), 2u);
}

TEST_F(Common, NothingToDoGivesTheValueItself) {
  Value a = x(f32({2, 3}));
  const int same[] = {0, 1};
  EXPECT_EQ(reshape_to(a, {2, 3}), a);
  EXPECT_EQ(broadcast_to(a, {2, 3}), a);
  EXPECT_EQ(transpose_by(a, same), a);
  EXPECT_EQ(cast_to(a, DType::f32), a);
  EXPECT_EQ(slice_axis(a, 1, 0, 3), a);
  EXPECT_EQ(concat_values(std::span(&a, 1), 0), a);
  EXPECT_EQ(pad_with(a, a, {0, 0}, {0, 0}), a);
  EXPECT_EQ(reverse_axes(a, {}), a);
}

TEST_F(Common, SlicesForwardsAndBackwards) {
  Value a = x(f32({6}));
  EXPECT_EQ(value(slice_axis(a, 0, 1, 2, 3)), (Numbers{1, 4}));
  EXPECT_EQ(value(slice_axis(a, 0, 5, 3, -2)), (Numbers{5, 3, 1}));
  EXPECT_EQ(value(slice_axis(a, -1, 5, 6, -1)), (Numbers{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(slice_axis(a, 0, 5, 0, -1).shape(), Shape{0});
  EXPECT_THROW(slice_axis(a, 0, 0, 1, 0), UserError);
}

TEST_F(Common, SplitsAndTakes) {
  Value a = x(f32({2, 3}));
  const Dim sizes[] = {1, 2};
  Values parts = split_axis(a, 1, sizes);
  EXPECT_EQ(value(parts[1]), (Numbers{1, 2, 4, 5}));
  EXPECT_EQ(value(take_axis(a, 0, 1)), (Numbers{3, 4, 5}));
  EXPECT_THROW(split_axis(a, 0, sizes), UserError);
}

TEST_F(Common, SqueezesAndUnsqueezes) {
  Value a = x(f32({1, 3, 1}));
  EXPECT_EQ(squeeze(a, {0, -1}).shape(), Shape{3});
  EXPECT_THROW(squeeze(a, {1}), UserError);
  EXPECT_EQ(unsqueeze(a, {0, -1}).shape(), (Shape{1, 1, 3, 1, 1}));
  EXPECT_THROW(unsqueeze(a, {0, 0}), UserError);
}

TEST_F(Common, SumToUndoesBroadcast) {
  Value dy = x(f32({2, 3}));
  EXPECT_EQ(value(sum_to(dy, {3})), (Numbers{3, 5, 7}));
  EXPECT_EQ(value(sum_to(dy, {2, 1})), (Numbers{3, 12}));
  EXPECT_EQ(value(sum_to(dy, {})), (Numbers{15}));
  EXPECT_EQ(sum_to(dy, {2, 3}), dy);
}

TEST_F(Common, ReductionsKeepAxes) {
  Value a = x(f32({2, 3}));
  EXPECT_EQ(reduce_axes(ops::reduce_max, a, {-1}, true).shape(), (Shape{2, 1}));
  EXPECT_EQ(value(broadcast_back(reduce_axes(ops::reduce_max, a, {1}), {1}, a.shape())),
            (Numbers{2, 2, 2, 5, 5, 5}));
}

TEST_F(Common, PoolsOverSpatialAxes) {
  Window w{.size = {2}, .strides = {2}, .dilations = {1}, .pads_low = {1}, .pads_high = {0}};
  Value a = x(f32({1, 1, 5}));
  EXPECT_EQ(value(max_pool(a, w)), (Numbers{0, 2, 4}));
  EXPECT_EQ(value(average_pool(a + 2.0, w, false)), (Numbers{2, 3.5, 5.5}));
  EXPECT_EQ(value(average_pool(a + 2.0, w, true)), (Numbers{1, 3.5, 5.5}));
  w.strides = {1};
  w.pads_high = {1};
  EXPECT_EQ(value(average_pool(a + 2.0, w, false)), (Numbers{2, 2.5, 3.5, 4.5, 5.5, 6}));
  w.strides = {2};
  w.channels_last = true;
  EXPECT_EQ(max_pool(x(f32({1, 4, 3})), w).shape(), (Shape{1, 3, 3}));
  EXPECT_THROW(max_pool(x(f32({1, 4})), w), UserError);
}

TEST_F(Common, WhereBroadcastsAll) {
  Value a = x(f32({2, 1})), b = x(f32({3}));
  EXPECT_EQ(value(where(greater(a, constant_like(a, 0)), a, b)), (Numbers{0, 1, 2, 1, 1, 1}));
}

TEST_F(Common, IntegersDoNotPassThroughADouble) {
  Value big = integer_like(x(i64({})), (std::int64_t{1} << 53) + 1);
  EXPECT_EQ(big.attrs().get<Array>("value").integer(0), (std::int64_t{1} << 53) + 1);
}

}  // namespace
}  // namespace hone
