// Compares the pass's expansion of casts with the reference's own conversions, on every code.
#include "pass/codes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "ops/common.h"
#include "ops/samples.h"
#include "test/pass/evaluate.h"

namespace hone {
namespace {

Function cast_function(DType from, DType to) {
  Function f;
  Value x = f.add_param(Type(from, {Dim::symbol("n", 0, 1 << 20)}), "x");
  f.add_result(ops::cast(x, {{"dtype", to}}));
  return f;
}

// Only parameters and results of the function may have a small dtype, and those are bitcast.
void expect_codes_only(const Function& f) {
  for (NodeId n : live_nodes(f)) {
    const Op& op = f.graph().op(n);
    if (&op == &ops::param || &op == &ops::bitcast) continue;
    for (std::size_t i = 0; i < f.graph().result_count(n); ++i)
      EXPECT_FALSE(is_small(f.graph().type(n, i).dtype)) << op.name;
  }
}

void expect_same(const Function& f, const std::vector<Array>& inputs) {
  const Function codes = small_dtypes_as_codes(f);
  expect_codes_only(codes);
  EXPECT_EQ(codes.param_types(), f.param_types());
  EXPECT_EQ(codes.result_types(), f.result_types());
  const std::vector<Wide> expected = evaluate_wide(f, inputs, Mode::strict);
  const std::vector<Wide> got = evaluate_wide(codes, inputs, Mode::strict);
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(same_values(got[i], expected[i], true)) << print(f);
}

Array every_code(DType t) {
  Array a = Array::zeros(t, {256});
  std::iota(a.writable<std::uint8_t>().begin(), a.writable<std::uint8_t>().end(), 0);
  return a;
}
Array every_half(DType t) {
  Array a = Array::zeros(t, {65536});
  std::iota(a.writable<std::uint16_t>().begin(), a.writable<std::uint16_t>().end(), 0);
  return a;
}
// Numbers around every value of every small float, halfway to the next and beyond the largest.
Array around(DType t) {
  std::vector<double> at = {0,     -0.0,   INFINITY, -INFINITY, NAN,
                            1e300, -1e300, 0x1p-140, 1e-310,    3e38};
  for (DType small : small_dtypes) {
    if (!is_float(small)) continue;
    for (int code = 0; code < 255; ++code) {
      const double x = small_to_f64(small, static_cast<std::uint8_t>(code)),
                   y = small_to_f64(small, static_cast<std::uint8_t>(code + 1)), half = (x + y) / 2;
      for (double z : {x, half, x * 1.5, x * 17})
        for (double near : {z, std::nextafter(z, -INFINITY), std::nextafter(z, INFINITY),
                            static_cast<double>(std::nextafterf(static_cast<float>(z), 0.f))})
          at.push_back(near);
    }
  }
  Array a = Array::zeros(t, {static_cast<std::int64_t>(at.size())});
  for (std::size_t i = 0; i < at.size(); ++i) a.set_real(static_cast<std::int64_t>(i), at[i]);
  return a;
}

TEST(Codes, EveryCodeCastToEveryDtype) {
  for (DType small : small_dtypes)
    for (int t = 0; t < dtype_count; ++t) {
      const auto to = static_cast<DType>(t);
      if (to == DType::text || (to == DType::f8e8m0 && !is_float(small))) continue;
      expect_same(cast_function(small, to), {every_code(small)});
    }
}

TEST(Codes, EveryF16AndBf16CastToEverySmallDtype) {
  for (DType small : small_dtypes)
    for (DType from : {DType::f16, DType::bf16})
      expect_same(cast_function(from, small), {every_half(from)});
}

TEST(Codes, F32AndF64AroundEveryNumberCastToEverySmallDtype) {
  for (DType small : small_dtypes)
    for (DType from : {DType::f32, DType::f64})
      expect_same(cast_function(from, small), {around(from)});
}

TEST(Codes, IntegersCastToEverySmallDtype) {
  const std::int64_t numbers[] = {0,         1,         -1,
                                  2,         3,         5,
                                  7,         8,         9,
                                  15,        16,        17,
                                  27,        100,       127,
                                  128,       255,       -128,
                                  -9,        -8,        449,
                                  463,       464,       465,
                                  57344,     61439,     61440,
                                  65535,     1 << 30,   INT32_MIN,
                                  INT64_MAX, INT64_MIN, (1ll << 53) + 1};
  for (DType small : small_dtypes) {
    if (small == DType::f8e8m0) continue;
    for (DType from : {DType::b1, DType::i8, DType::u8, DType::i16, DType::u16, DType::i32,
                       DType::u32, DType::i64, DType::u64}) {
      Array a = Array::zeros(from, {std::ssize(numbers)});
      for (std::int64_t i = 0; i < a.count(); ++i) a.set_integer(i, numbers[i]);
      expect_same(cast_function(from, small), {a});
    }
  }
}

TEST(Codes, BitcastsBetweenBytes) {
  for (DType small : small_dtypes)
    for (DType t : {DType::u8, DType::i8, DType::i4, DType::f8e5m2, DType::f4e2m1}) {
      Function f;
      Value x = f.add_param(Type(t, {256}), "x");
      // NaNs have one code in the reference: they are not compared bit for bit.
      f.add_result(cast_to(ops::bitcast(x, {{"dtype", small}}), DType::f32));
      expect_same(f, {every_code(t)});
    }
}

TEST(Codes, MovementConstantsAndBodies) {
  const DType t = DType::f8e4m3fn;
  auto branch = [&](bool reversed) {
    Function body;
    Value x = body.add_param(Type(t, {256}), "x");
    body.add_result(reversed ? reverse_axes(x, {0}) : x);
    return std::make_shared<const Function>(std::move(body));
  };
  Function f;
  Value on = f.add_param(b1({}), "on"), x = f.add_param(Type(t, {256}), "x");
  Value made = ops::if_else(Values{on, x}, {{"then", branch(true)}, {"else", branch(false)}});
  Value one = constant(f.graph(), Array::scalar(1, t));
  f.add_result(pad_with(made, one, {2}, {1}));
  f.add_result(cast_to(made, DType::f32));
  f.add_result(x);
  for (int on : {0, 1}) expect_same(f, {Array::scalar_int(on, DType::b1), every_code(t)});
}

TEST(Codes, WithoutSmallDtypesNothingChanges) {
  const Function f = cast_function(DType::f32, DType::f16);
  EXPECT_EQ(&small_dtypes_as_codes(f).graph(), &f.graph());
}

}  // namespace
}  // namespace hone
