// docs/numbers.md, rule by rule, in the reference.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/common.h"
#include "ref/evaluate.h"
#include "test/ref/special.h"

namespace hone {
namespace {

Array reals(DType t, const std::vector<double>& values) {
  Array a = Array::zeros(t, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i)
    a.set_real(static_cast<std::int64_t>(i), values[i]);
  return a;
}
Array integers(DType t, const std::vector<std::int64_t>& values) {
  Array a = Array::zeros(t, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i)
    a.set_integer(static_cast<std::int64_t>(i), values[i]);
  return a;
}

// Evaluates the op on parameters that hold these arrays.
Wide run(const Op& op, const std::vector<Array>& inputs, Attrs attrs = {},
         Mode mode = Mode::strict) {
  Function f;
  Values operands;
  for (const Array& a : inputs) operands.push_back(f.add_param(a.type(), "x"));
  f.add_result(f.graph().intern(op, operands, std::move(attrs)));
  return evaluate_wide(f, inputs, mode).at(0);
}

using Integers = std::vector<std::int64_t>;
using Reals = std::vector<double>;

TEST(Numbers, IntegersWrap) {
  for (auto [t, high, low] :
       {std::tuple{DType::i8, 127l, -128l}, std::tuple{DType::i32, 2147483647l, -2147483648l},
        std::tuple{DType::i64, INT64_MAX, INT64_MIN}, std::tuple{DType::u8, 255l, 0l},
        std::tuple{DType::u64, -1l, 0l}}) {
    EXPECT_EQ(run(ops::add, {integers(t, {high}), integers(t, {1})}).integers, Integers{low}) << t;
    EXPECT_EQ(run(ops::sub, {integers(t, {low}), integers(t, {1})}).integers, Integers{high}) << t;
    EXPECT_EQ(run(ops::neg, {integers(t, {low})}).integers, Integers{low}) << t;
    EXPECT_EQ(run(ops::abs, {integers(t, {low})}).integers, Integers{low}) << t;
  }
  EXPECT_EQ(run(ops::mul, {integers(DType::i32, {65537}), integers(DType::i32, {65537})}).integers,
            Integers{131073});
}

TEST(Numbers, IntegerDivisionTruncatesAndNeverTraps) {
  Array a = integers(DType::i64, {7, -7, 7, -7, 5, -5, INT64_MIN});
  Array b = integers(DType::i64, {2, 2, -2, -2, 0, 0, -1});
  EXPECT_EQ(run(ops::div, {a, b}).integers, (Integers{3, -3, -3, 3, -1, -1, INT64_MIN}));
  EXPECT_EQ(run(ops::rem, {a, b}).integers, (Integers{1, -1, 1, -1, 5, -5, 0}));
  EXPECT_EQ(run(ops::mod, {a, b}).integers, (Integers{1, 1, -1, -1, 5, -5, 0}));
  Array c = integers(DType::i8, {-128, 100}), d = integers(DType::i8, {-1, 0});
  EXPECT_EQ(run(ops::div, {c, d}).integers, (Integers{-128, -1}));
  Array e = integers(DType::u8, {200, 200}), g = integers(DType::u8, {3, 0});
  EXPECT_EQ(run(ops::div, {e, g}).integers, (Integers{66, 255}));
  EXPECT_EQ(run(ops::rem, {e, g}).integers, (Integers{2, 200}));
}

TEST(Numbers, UnsignedSixtyFourBitsAreUnsigned) {
  Array a = integers(DType::u64, {-1, 1}), b = integers(DType::u64, {2, 2});
  EXPECT_EQ(run(ops::div, {a, b}).integers, (Integers{INT64_MAX, 0}));
  EXPECT_EQ(run(ops::rem, {a, b}).integers, (Integers{1, 1}));
  EXPECT_EQ(run(ops::lt, {a, b}).integers, (Integers{0, 1}));
  EXPECT_EQ(run(ops::maximum, {a, b}).integers, (Integers{-1, 2}));
  EXPECT_EQ(run(ops::cast, {a}, {{"dtype", DType::f64}}).reals, (Reals{0x1p64, 1}));
  EXPECT_EQ(run(ops::reduce_min, {a}, {{"axes", Dims{0}}}).integers, Integers{1});
  EXPECT_EQ(run(ops::shift_right, {a, b}).integers, (Integers{INT64_MAX / 2, 0}));
}

TEST(Numbers, ShiftsBeyondTheWidthAreDefined) {
  Array x = integers(DType::i32, {-8, 8, 1, 1}), n = integers(DType::i32, {40, 40, 31, -1});
  EXPECT_EQ(run(ops::shift_right, {x, n}).integers, (Integers{-1, 0, 0, 0}));
  EXPECT_EQ(run(ops::shift_left, {x, n}).integers, (Integers{0, 0, INT32_MIN, 0}));
}

TEST(Numbers, IntegerPowers) {
  Array x = integers(DType::i64, {2, -3, 0, 1, -1, -1, 2, 0}),
        n = integers(DType::i64, {10, 3, 0, -5, -5, -4, -1, -1});
  EXPECT_EQ(run(ops::pow, {x, n}).integers, (Integers{1024, -27, 1, 1, -1, 1, 0, -1}));
}

TEST(Numbers, NanGoesThroughMinMaxAndReductions) {
  Array a = reals(DType::f32, {nan, 1, 2}), b = reals(DType::f32, {1, nan, 1});
  for (const Op* op : {&ops::maximum, &ops::minimum}) {
    Wide y = run(*op, {a, b});
    EXPECT_TRUE(std::isnan(y.reals[0]) && std::isnan(y.reals[1]) && !std::isnan(y.reals[2]));
  }
  for (const Op* op : {&ops::reduce_max, &ops::reduce_min, &ops::reduce_sum, &ops::reduce_prod})
    for (const Array& x : {a, b})
      EXPECT_TRUE(std::isnan(run(*op, {x}, {{"axes", Dims{0}}}).reals[0])) << op->name;
  Attrs by{{"axis", 0}, {"dtype", DType::i64}};
  EXPECT_EQ(run(ops::argmax, {b}, by).integers, Integers{1});
  EXPECT_EQ(run(ops::argmin, {b}, by).integers, Integers{1});
  EXPECT_EQ(run(ops::argmax, {reals(DType::f32, {1, 3, 3})}, by).integers, Integers{1});
  Wide sorted = run(ops::sort, {b}, {{"axis", 0}, {"descending", 0}});
  EXPECT_TRUE(std::isnan(sorted.reals[2]));
  sorted = run(ops::sort, {b}, {{"axis", 0}, {"descending", 1}});
  EXPECT_TRUE(std::isnan(sorted.reals[0]));
}

TEST(Numbers, ComparisonsWithNanAreFalse) {
  Array a = reals(DType::f32, {nan, 1}), b = reals(DType::f32, {nan, 1});
  EXPECT_EQ(run(ops::eq, {a, b}).integers, (Integers{0, 1}));
  EXPECT_EQ(run(ops::ne, {a, b}).integers, (Integers{1, 0}));
  EXPECT_EQ(run(ops::lt, {a, b}).integers, (Integers{0, 0}));
  EXPECT_EQ(run(ops::le, {a, b}).integers, (Integers{0, 1}));
}

TEST(Numbers, ZerosKeepTheirSign) {
  Array zero = reals(DType::f32, {-0.0});
  EXPECT_TRUE(std::signbit(run(ops::add, {zero, zero}).reals[0]));
  EXPECT_TRUE(std::signbit(run(ops::sqrt, {zero}).reals[0]));
  EXPECT_TRUE(std::signbit(run(ops::sign, {zero}).reals[0]));
  EXPECT_TRUE(std::signbit(run(ops::ceil, {reals(DType::f32, {-0.5})}).reals[0]));
  EXPECT_FALSE(std::signbit(run(ops::neg, {zero}).reals[0]));
  EXPECT_EQ(run(ops::div, {reals(DType::f32, {1}), zero}).reals, Reals{-infinity});
}

TEST(Numbers, EmptyReductions) {
  Attrs all{{"axes", Dims{0}}};
  Array none = reals(DType::f32, {}), no_integers = integers(DType::i8, {});
  EXPECT_EQ(run(ops::reduce_sum, {none}, all).reals, Reals{0});
  EXPECT_EQ(run(ops::reduce_prod, {none}, all).reals, Reals{1});
  EXPECT_EQ(run(ops::reduce_max, {none}, all).reals, Reals{-infinity});
  EXPECT_EQ(run(ops::reduce_min, {none}, all).reals, Reals{infinity});
  EXPECT_TRUE(std::isnan(run(ops::mean, {none}, all).reals[0]));
  EXPECT_EQ(run(ops::reduce_max, {no_integers}, all).integers, Integers{-128});
  EXPECT_EQ(run(ops::reduce_min, {no_integers}, all).integers, Integers{127});
  EXPECT_EQ(run(ops::reduce_and, {integers(DType::b1, {})}, all).integers, Integers{1});
  EXPECT_EQ(run(ops::reduce_or, {integers(DType::b1, {})}, all).integers, Integers{0});
}

TEST(Numbers, CastsSaturateAndTruncate) {
  Array x = reals(DType::f64, {2.9, -2.9, 300, -300, nan, infinity, -infinity});
  auto to = [&](DType t) { return run(ops::cast, {x}, {{"dtype", t}}).integers; };
  EXPECT_EQ(to(DType::i8), (Integers{2, -2, 127, -128, 0, 127, -128}));
  EXPECT_EQ(to(DType::u8), (Integers{2, 0, 255, 0, 0, 255, 0}));
  EXPECT_EQ(to(DType::i64), (Integers{2, -2, 300, -300, 0, INT64_MAX, INT64_MIN}));
  EXPECT_EQ(to(DType::u64), (Integers{2, 0, 300, 0, 0, -1, 0}));
  EXPECT_EQ(to(DType::b1), (Integers{1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(run(ops::cast, {reals(DType::f32, {-0.0})}, {{"dtype", DType::b1}}).integers,
            Integers{0});
  EXPECT_EQ(run(ops::cast, {integers(DType::i64, {300, -1})}, {{"dtype", DType::u8}}).integers,
            (Integers{44, 255}));
}

TEST(Numbers, CastsRoundOnce) {
  // Just above the midpoint of two f32; conversion through a double would round it to the midpoint.
  std::int64_t n = (std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1;
  EXPECT_EQ(run(ops::cast, {integers(DType::i64, {n})}, {{"dtype", DType::f32}}).reals,
            Reals{0x1p60 + 0x1p37});
  EXPECT_EQ(
      run(ops::cast, {reals(DType::f64, {1 + 0x1p-11 + 0x1p-40})}, {{"dtype", DType::f16}}).reals,
      Reals{1 + 0x1p-10});
  EXPECT_EQ(run(ops::cast, {reals(DType::f32, {70000})}, {{"dtype", DType::f16}}).reals,
            Reals{infinity});
}

TEST(Numbers, RoundingTiesToEven) {
  EXPECT_EQ(run(ops::round, {reals(DType::f32, {0.5, 1.5, 2.5, -0.5, -1.5})}).reals,
            (Reals{0, 2, 2, -0.0, -2}));
}

TEST(Numbers, StrictRoundsEachOpAndWideOnlyCasts) {
  Function f;
  Value x = f.add_param(f16({1}), "x");
  f.add_result(x * 1024.0 + 0.25);
  f.add_result(cast_to(cast_to(x * 1024.0 + 0.25, DType::bf16), DType::f16));
  Array one = reals(DType::f16, {1});
  std::vector<Wide> strict = evaluate_wide(f, std::span(&one, 1), Mode::strict),
                    wide = evaluate_wide(f, std::span(&one, 1), Mode::wide);
  EXPECT_EQ(strict[0].reals, Reals{1024});
  EXPECT_EQ(wide[0].reals, Reals{1024.25});
  EXPECT_EQ(wide[1].reals, Reals{1024});
}

TEST(Numbers, DenormalsAreKept) {
  EXPECT_EQ(run(ops::mul, {reals(DType::f32, {0x1p-149}), reals(DType::f32, {1})}).reals,
            Reals{0x1p-149});
  EXPECT_EQ(run(ops::mul, {reals(DType::f16, {0x1p-24}), reals(DType::f16, {1})}).reals,
            Reals{0x1p-24});
}

TEST(Numbers, PadsOfAConvolutionAddNoProducts) {
  Array x = reals(DType::f32, {1, 2});
  Function f;
  Value v = f.add_param(f32({2}), "x");
  Value w = broadcast_to(scalar(f.graph(), infinity, DType::f32), {1, 1, 3});
  f.add_result(ops::conv(Values{reshape_to(v, {1, 1, 2}), w}, {{"strides", Dims{1}},
                                                               {"dilations", Dims{1}},
                                                               {"pads_low", Dims{1}},
                                                               {"pads_high", Dims{1}},
                                                               {"groups", 1},
                                                               {"channels_last", 0}}));
  EXPECT_EQ(evaluate_wide(f, std::span(&x, 1), Mode::strict)[0].reals, (Reals{infinity, infinity}));
}

TEST(Numbers, CumulativeKinds) {
  Array x = integers(DType::i64, {3, 1, 4, 2});
  auto by = [&](std::string kind, int exclusive, int reverse) {
    return run(ops::cumulative, {x},
               {{"axis", 0}, {"kind", kind}, {"exclusive", exclusive}, {"reverse", reverse}})
        .integers;
  };
  EXPECT_EQ(by("sum", 0, 0), (Integers{3, 4, 8, 10}));
  EXPECT_EQ(by("sum", 1, 0), (Integers{0, 3, 4, 8}));
  EXPECT_EQ(by("sum", 0, 1), (Integers{10, 7, 6, 2}));
  EXPECT_EQ(by("prod", 1, 1), (Integers{8, 8, 2, 1}));
  EXPECT_EQ(by("max", 0, 0), (Integers{3, 3, 4, 4}));
  EXPECT_EQ(by("min", 0, 1), (Integers{1, 1, 2, 2}));
}

TEST(Numbers, SortIsStable) {
  Function f;
  Array x = integers(DType::i64, {2, 1, 2, 1});
  Value v = f.add_param(x.type(), "x");
  for (int descending : {0, 1}) {
    Value sorted = ops::sort(v, {{"axis", 0}, {"descending", descending}});
    f.add_result(sorted);
    f.add_result(sorted.result(1));
  }
  std::vector<Wide> y = evaluate_wide(f, std::span(&x, 1), Mode::strict);
  EXPECT_EQ(y[0].integers, (Integers{1, 1, 2, 2}));
  EXPECT_EQ(y[1].integers, (Integers{1, 3, 0, 2}));
  EXPECT_EQ(y[2].integers, (Integers{2, 2, 1, 1}));
  EXPECT_EQ(y[3].integers, (Integers{0, 2, 1, 3}));
}

// Arguments where the textbook formula overflows and the function does not.
TEST(Numbers, CompositesDoNotOverflow) {
  Attrs row{{"axis", 0}};
  EXPECT_EQ(run(ops::softmax, {reals(DType::f32, {1e4, 0, 1e4})}, row).reals, (Reals{0.5, 0, 0.5}));
  EXPECT_EQ(run(ops::log_softmax, {reals(DType::f32, {1e4, 0})}, row).reals, (Reals{0, -1e4}));
  EXPECT_EQ(run(ops::softplus, {reals(DType::f32, {1000, -1000})}).reals, (Reals{1000, 0}));
  EXPECT_EQ(run(ops::sigmoid, {reals(DType::f32, {1000, -1000})}).reals, (Reals{1, 0}));
  EXPECT_EQ(run(ops::gelu_tanh, {reals(DType::f32, {1000, -1000})}).reals, (Reals{1000, -0.0}));
}

// The sums of f16 rows exceed the range of f16, and so do squares of 300.
TEST(Numbers, NarrowRowsAreComputedInF32) {
  Array large = reals(DType::f16, {60000, 60000, 60000, 60000});
  Attrs all{{"axes", Dims{0}}};
  EXPECT_EQ(run(ops::mean, {large}, all).reals, Reals{60000});
  EXPECT_EQ(run(ops::variance, {reals(DType::f16, {300, -100})}, all).reals, Reals{40000});
  Array scale = reals(DType::f16, {1, 1}), bias = reals(DType::f16, {0, 0});
  Attrs row{{"axis", 0}, {"epsilon", 0.0}};
  EXPECT_EQ(run(ops::layer_norm, {reals(DType::f16, {3000, 1000}), scale, bias}, row).reals,
            (Reals{1, -1}));
  EXPECT_EQ(run(ops::rms_norm, {reals(DType::f16, {3000, -3000}), scale}, row).reals,
            (Reals{1, -1}));
  Attrs window{{"window", Dims{4}},   {"strides", Dims{1}},   {"dilations", Dims{1}},
               {"pads_low", Dims{0}}, {"pads_high", Dims{0}}, {"include_pads", 0}};
  EXPECT_EQ(run(ops::avg_pool, {large}, window).reals, Reals{60000});
}

// Known answers of Random123 1.09, kat_vectors: philox4x32 10.
TEST(Numbers, RandomBitsArePhilox) {
  auto words = [](std::uint64_t key, std::uint64_t counter) {
    Array k = Array::scalar_int(static_cast<std::int64_t>(key), DType::u64),
          c = Array::scalar_int(static_cast<std::int64_t>(counter), DType::u64);
    return run(ops::random_bits, {k, c}, {{"shape", Dims{8}}}).integers;
  };
  Integers zero = words(0, 0);
  zero.resize(4);
  EXPECT_EQ(zero, (Integers{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_NE(words(0, 0), words(1, 0));
  EXPECT_NE(words(0, 0), words(0, 1));
  EXPECT_NE(words(0, 0)[0], words(0, 0)[4]);
}

}  // namespace
}  // namespace hone
