#include <gtest/gtest.h>

#include <cmath>

#include "ops/common.h"
#include "ops/require.h"
#include "ref/expected.h"
#include "test/ref/special.h"

namespace hone {
namespace {

Wide values(DType t, std::vector<double> reals) {
  Wide w(t, {static_cast<std::int64_t>(reals.size())});
  w.reals = std::move(reals);
  return w;
}
Wide integers(std::vector<std::int64_t> list) {
  Wide w(DType::i64, {static_cast<std::int64_t>(list.size())});
  w.integers = std::move(list);
  return w;
}

TEST(Compare, AllowsFourTimesTheSpreadAndSixteenEpsilon) {
  Wide strict = values(DType::f32, {1.001, 100}), wide = values(DType::f32, {1, 100});
  double limit = 4 * (1.001 - 1.0) + 16 * 0x1p-23 * 100;
  EXPECT_TRUE(accept(values(DType::f32, {1 + 0.999 * limit, 100}), strict, wide));
  Comparison over = accept(values(DType::f32, {1, 100 + 1.001 * limit}), strict, wide);
  EXPECT_FALSE(over);
  EXPECT_EQ(over.first_bad, 1);
  EXPECT_NEAR(over.limit, limit, 1e-12);
  EXPECT_NEAR(over.max_abs_error, 1.001 * limit, 1e-9);
  EXPECT_NEAR(over.max_rel_error, over.max_abs_error / 100, 1e-12);
}

TEST(Compare, SpecialsMustAgreeWhereTheReferencesDo) {
  Wide wide = values(DType::f32, {nan, infinity, -infinity, 1});
  EXPECT_TRUE(accept(wide, wide, wide));
  for (std::size_t i = 0; i < 4; ++i) {
    Wide got = wide;
    got.reals[i] = i == 3 ? nan : 0;
    Comparison c = accept(got, wide, wide);
    EXPECT_FALSE(c);
    EXPECT_EQ(c.first_bad, static_cast<std::int64_t>(i));
  }
  Wide other = values(DType::f32, {nan, infinity, infinity, 1});
  EXPECT_FALSE(accept(other, wide, wide));
}

TEST(Compare, WhereTheReferencesDisagreeNothingIsDecided) {
  Wide strict = values(DType::f16, {infinity, 2}), wide = values(DType::f16, {100, 2});
  Comparison c = accept(values(DType::f16, {100, 2}), strict, wide);
  EXPECT_TRUE(c);
  EXPECT_EQ(c.undecided, 1);
  // A number too large for f16 is an infinity in both modes.
  Wide large = values(DType::f16, {1e6, 2}), full = values(DType::f16, {infinity, 2});
  EXPECT_TRUE(accept(full, full, large));
  EXPECT_FALSE(accept(values(DType::f16, {65504, 2}), full, large));
}

// y = exp(x). The limit shows whether the rounding mode was evaluated.
TEST(Expected, AsksTheModeThatRoundsWhereTheOtherDoesNotAccept) {
  Function f;
  f.add_result(ops::exp(f.add_param(Type(DType::f16, {2}), "x")), "y");
  std::vector<Array> inputs = {Array::zeros(DType::f16, {2})};
  inputs[0].set_real(0, 1);
  Evaluator evaluator(f);
  Expected expected(evaluator, inputs, Mode::strict);
  const double e = std::exp(1.0), narrow = 16 * 0x1p-10 * e;
  EXPECT_EQ(expected.wide()[0].reals[0], e);
  const Comparison near = expected.accept(0, values(DType::f16, {e + 0.9 * narrow, 1}));
  EXPECT_TRUE(near);
  EXPECT_NEAR(near.limit, narrow, 1e-12);
  const double rounded = expected.rounded()[0].reals[0],
               limit = narrow + 4 * std::fabs(e - rounded);
  EXPECT_NE(rounded, e);
  const Comparison further = expected.accept(0, values(DType::f16, {e + (narrow + limit) / 2, 1}));
  EXPECT_TRUE(further);
  EXPECT_NEAR(further.limit, limit, 1e-12);
  EXPECT_FALSE(expected.accept(0, values(DType::f16, {e + 1.1 * limit, 1})));
  EXPECT_FALSE(expected.accept(0, values(DType::f16, {nan, 1})));
}

// The sum rounds to 1 in f16, an index out of range; in the other mode the index is 0.
TEST(Expected, NothingIsDecidedWhereOneModeRefusesTheInputs) {
  Function f;
  const Value x = f.add_param(Type(DType::f16, {1}), "x");
  const Value index = cast_to(x + 0x3p-13, DType::i64);
  require_within(index, 0, 0, "an index");
  f.add_result(index, "y");
  std::vector<Array> inputs = {Array::zeros(DType::f16, {1})};
  inputs[0].set_real(0, 1 - 0x1p-11);
  EXPECT_THROW(evaluate(f, inputs), UserError);
  Evaluator evaluator(f);
  Expected expected(evaluator, inputs, Mode::strict);
  EXPECT_TRUE(expected.may_be_refused());
  EXPECT_TRUE(expected.accept(0, integers({0})));
  const Comparison other = expected.accept(0, integers({1}));
  EXPECT_TRUE(other);
  EXPECT_EQ(other.undecided, 1);
  inputs[0].set_real(0, 0.5);
  EXPECT_FALSE(Expected(evaluator, inputs, Mode::strict).may_be_refused());
}

TEST(Compare, IntegersAreEqual) {
  EXPECT_TRUE(accept(integers({1, 2}), integers({1, 2}), integers({1, 2})));
  EXPECT_EQ(accept(integers({1, 3}), integers({1, 2}), integers({1, 2})).first_bad, 1);
  EXPECT_TRUE(accept(integers({1, 9}), integers({1, 3}), integers({1, 2})));
}

TEST(Compare, FormsMustAgree) {
  EXPECT_FALSE(accept(values(DType::f16, {1}), values(DType::f32, {1}), values(DType::f32, {1})));
  EXPECT_FALSE(
      accept(values(DType::f32, {1, 2}), values(DType::f32, {1}), values(DType::f32, {1})));
}

TEST(Compare, TolerancesOfTestSets) {
  Array expected = narrow(values(DType::f32, {1, 1000, nan, infinity}));
  EXPECT_TRUE(
      within(narrow(values(DType::f32, {1.01, 1001, nan, infinity})), expected, 0.01, 0.001));
  EXPECT_FALSE(
      within(narrow(values(DType::f32, {1.02, 1001, nan, infinity})), expected, 0.01, 0.001));
  EXPECT_FALSE(within(narrow(values(DType::f32, {1, 1000, 0, infinity})), expected, 1, 1));
  EXPECT_FALSE(within(narrow(values(DType::f32, {1, 1000, nan, -infinity})), expected, 1, 1));
}

}  // namespace
}  // namespace hone
