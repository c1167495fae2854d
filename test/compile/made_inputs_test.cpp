#include "verify/model/made_inputs.h"

#include <gtest/gtest.h>

#include "ir/measured.h"
#include "ops/common.h"
#include "ops/host.h"
#include "ops/require.h"
#include "ref/evaluate.h"

namespace hone {
namespace {

std::vector<std::int64_t> integers(const Array& a) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < a.count(); ++i) out.push_back(a.integer(i));
  return out;
}

TEST(MadeInputs, IntegersAreOfTheRangeThatTheyMustLieIn) {
  Function f;
  const Value ids = f.add_param(i64({100}), "ids"), late = f.add_param(i64({100}), "late"),
              x = f.add_param(f32({2}), "x");
  require_within(ids, -2, 1, "ids");
  require_within(late, 5, 6, "late");
  f.add_result(x, "y");
  const MadeInputs made = made_inputs(f, {});
  EXPECT_EQ(made.problem, "");
  for (std::int64_t i : integers(made.arrays[0])) EXPECT_TRUE(i == 0 || i == 1) << i;
  for (std::int64_t i : integers(made.arrays[1])) EXPECT_TRUE(i == 5 || i == 6) << i;
  EXPECT_EQ(made.assumptions[0], "'ids' i64[100]: 0 to 1");
  EXPECT_EQ(made.assumptions[1], "'late' i64[100]: 5 to 6");
  EXPECT_EQ(made.assumptions[2], "'x' f32[2]: -1 to 1");
  EXPECT_NO_THROW(evaluate(f, made.arrays));
}

TEST(MadeInputs, ARangeMayDependOnASize) {
  Function f;
  const Dim n = Dim::symbol("n", 1, 64);
  const Value table = f.add_param(f32({n, 4}), "table"), ids = f.add_param(i64({50}), "ids");
  require_within(ids, 0, n - 1, "ids");
  f.add_result(table, "y");
  const MadeInputs made = made_inputs(f, {{"n", 3}});
  EXPECT_EQ(made.assumptions[1], "'ids' i64[50]: 0 to 2");
  EXPECT_NO_THROW(evaluate(f, made.arrays));
}

// A mask over the cached and the new positions is as long as both together: no single size gives
// its length.
TEST(MadeInputs, ASizeMayBeTheSumOfTwo) {
  Function f;
  const Dim past = Dim::symbol("past", 0, 64), fresh = Dim::symbol("fresh", 0, 64),
            total = Dim::symbol("total", 0, 64);
  const Value mask = f.add_param(f32({total}), "mask");
  f.add_param(f32({past}), "cache");
  f.add_param(f32({fresh}), "x");
  const Value all = iota_value(f.graph(), DType::i64, {past + fresh}, 0);
  require_within(all, 0, total - 1, "a position");
  f.add_result(ops::gather(Values{mask, all}, {{"axis", 0}}), "y");
  const std::optional<MadeInputs> made = made_inputs_and_sizes(f, {});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->problem, "");
  EXPECT_GE(made->arrays[0].count(), made->arrays[1].count() + made->arrays[2].count());
  EXPECT_NO_THROW(evaluate(f, made->arrays));
}

// Values that satisfy a requirement on a computed number are found by trying.
TEST(MadeInputs, WhatIsComputedOfIntegersIsTried) {
  Function f;
  const Value n = f.add_param(i64({}), "n"), m = f.add_param(i64({}), "m");
  require_within(n * m, 1, 1, "n m");
  f.add_result(n, "y");
  const MadeInputs made = made_inputs(f, {});
  EXPECT_EQ(made.problem, "");
  EXPECT_NO_THROW(evaluate(f, made.arrays));
}

// Axes: each may occur only once.
TEST(MadeInputs, IntegersThatMustDifferAreCounted) {
  Function f;
  const Value axes = f.add_param(i64({5}), "axes");
  const auto all = [&](double x) { return broadcast_to(scalar(f.graph(), x, DType::i64), {5}); };
  const Value seen =
      ops::scatter(Values{all(0), axes, all(1)}, {{"axis", 0}, {"kind", std::string("add")}});
  require_within(axes, 0, 4, "axes");
  require_within(seen, 1, 1, "how often each axis stands there");
  f.add_result(axes, "y");
  const MadeInputs made = made_inputs(f, {});
  EXPECT_EQ(made.problem, "");
  EXPECT_EQ(integers(made.arrays[0]), (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(made.assumptions[0], "'axes' i64[5]: 0, 1, 2, ...");
}

// An encoder refuses a number that is not one of its categories.
TEST(MadeInputs, NumbersAreThoseThatTheyAreComparedWith) {
  Function f;
  const Value x = f.add_param(i64({5}), "x");
  const std::int64_t known[] = {1000, -70, 36};
  const Value categories = constant(f.graph(), Array::of<std::int64_t>(DType::i64, {3}, known));
  const Value is_it = ops::eq(broadcast_to(reshape_to(x, {5, 1}), Shape{5, 3}),
                              broadcast_to(categories + 0.0, Shape{5, 3})),
              is_none = ops::bit_not(reduce_axes(ops::reduce_or, is_it, {1}));
  require_within(cast_to(is_none, DType::i64), 0, 0, "a flag that marks an unknown category");
  f.add_result(x, "y");
  const MadeInputs made = made_inputs(f, {});
  EXPECT_EQ(made.problem, "");
  EXPECT_EQ(integers(made.arrays[0]), (std::vector<std::int64_t>{1000, -70, 36, 1000, -70}));
  EXPECT_EQ(made.assumptions[0], "'x' i64[5]: the 3 values that the model compares it with");
}

// A value that differs from run to run is not tried as an input. A string input always gets
// strings.
TEST(MadeInputs, ValuesThatDependOnDataAreNoCandidates) {
  Function f;
  const Value x = f.add_param(i64({3}), "x"), t = f.add_param(Type(DType::text, {2}), "t");
  const Dim n = Dim::symbol("n", 0, 3);
  const Value counted = ops::measure(reduce_axes(ops::reduce_min, x, {0}),
                                     {{"symbol", Dims{n}}, {"high", Dims{3}}}),
              size = size_value(f.graph(), n, DType::i64);
  for (const Value& v : {counted, size}) {
    const Value is_it = ops::eq(x, broadcast_to(v, Shape{3}));
    require_within(cast_to(reduce_axes(ops::reduce_or, is_it, {0}), DType::i64), 1, 1, "a flag");
  }
  f.add_result(t, "y");
  const MadeInputs made = made_inputs(f, {});
  EXPECT_EQ(made.problem, "");
  EXPECT_NO_THROW(evaluate(f, made.arrays));
}

TEST(MadeInputs, StringsThatAreParsedAreNumbers) {
  Function f;
  const Value x = f.add_param(Type(DType::text, {5}), "x");
  f.add_result(ops::real_of_text(x), "y");
  const MadeInputs made = made_inputs(f, {});
  EXPECT_EQ(made.problem, "");
  EXPECT_EQ(made.assumptions[0], "'x' text[5]: numbers as strings, 0 to 7");
  EXPECT_NO_THROW(evaluate(f, made.arrays));
}

TEST(MadeInputs, BytesThatAreDecodedAreAnImage) {
  Function f;
  const Dim n = Dim::symbol("n", 1, 4096);
  const Value x = f.add_param(Type(DType::u8, {n}), "x");
  f.add_result(ops::decode_image(x, {{"kind", std::string("rgb")}, {"count", std::int64_t{300}}}),
               "y");
  const std::optional<MadeInputs> made = made_inputs_and_sizes(f, {});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->problem, "");
  EXPECT_NO_THROW(evaluate(f, made->arrays));
}

// The sizes of the parts of a Split.
TEST(MadeInputs, ElementsMayHaveAFixedSum) {
  Function f;
  const Value parts = f.add_param(i64({3}), "parts");
  require_within(parts, 1, 40, "a part");
  require_within(reduce_axes(ops::reduce_sum, parts, {0}), 40, 40, "the sum");
  f.add_result(parts, "y");
  const MadeInputs made = made_inputs(f, {});
  EXPECT_EQ(made.problem, "");
  EXPECT_NO_THROW(evaluate(f, made.arrays));
}

TEST(MadeInputs, IndicesMayBeShiftedAndScaled) {
  for (const auto& [shift, scale] :
       {std::pair(100, 1), std::pair(100, 4), std::pair(100, -2), std::pair(-3000, 1)}) {
    Function f;
    const Value x = f.add_param(i64({200}), "x");
    require_within(x * integer_like(x, scale) + integer_like(x, shift), 0, 9, "an index");
    f.add_result(x, "y");
    const MadeInputs made = made_inputs(f, {});
    EXPECT_EQ(made.problem, "") << shift << " " << scale;
    EXPECT_NO_THROW(evaluate(f, made.arrays)) << shift << " " << scale;
  }
}

TEST(MadeInputs, RealsMayBeSmallOrPositive) {
  Function f;
  const Value x = f.add_param(f32({400}), "x");
  require_within(cast_to(x * 100.0, DType::i64), 0, 60, "an index");
  f.add_result(x, "y");
  const MadeInputs made = made_inputs(f, {});
  EXPECT_EQ(made.problem, "");
  EXPECT_NO_THROW(evaluate(f, made.arrays));
}

// A reflecting pad needs an axis that is longer than the pad.
TEST(MadeInputs, ASizeMayHaveToBeLarge) {
  Function f;
  const Dim n = Dim::symbol("n", 1, 1 << 20), m = Dim::symbol("m", 1, 64);
  f.add_param(f32({n, m}), "x");
  require_within(size_value(f.graph(), n, DType::i64) + scalar(f.graph(), 0, DType::i64), 5001,
                 1 << 20, "the axis");
  f.add_result(f.param(0), "y");
  const std::optional<MadeInputs> made = made_inputs_and_sizes(f, {});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->problem, "");
  EXPECT_NO_THROW(evaluate(f, made->arrays));
}

// Nothing that has an empty axis is tried.
TEST(MadeInputs, DataDependentSizesAreNotEmptyIfThatIsPossible) {
  Function f;
  const Value k = f.add_param(i64({1}), "k");
  const Dim n = Dim::symbol("n", 0, 50);
  const Value one = reshape_to(k, Dims{}) - scalar(f.graph(), 7, DType::i64),
              counted = ops::measure(ops::maximum(one, scalar(f.graph(), 0, DType::i64)),
                                     {{"symbol", Dims{n}}, {"high", Dims{50}}});
  f.add_result(iota_value(f.graph(), DType::i64, {n}, 0) + broadcast_to(counted, {n}), "y");
  const MadeInputs made = made_inputs(f, {});
  EXPECT_EQ(made.problem, "");
  EXPECT_GT(evaluate(f, made.arrays)[0].count(), 0);
}

TEST(MadeInputs, WhatNothingSatisfiesIsSaid) {
  Function f;
  const Value n = f.add_param(i64({}), "n");
  require_within(n * n + integer_like(n, 17), 0, 3, "n n");
  f.add_result(n, "y");
  const MadeInputs made = made_inputs(f, {});
  EXPECT_NE(made.problem.find("n n"), std::string::npos) << made.problem;
}

}  // namespace
}  // namespace hone
