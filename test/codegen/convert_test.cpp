// Conversions between dtypes, in registers and in memory, against src/type and the rules of
// docs/numbers.md.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "jit.h"

namespace hone::llvm {

namespace {

class Convert : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(EachTarget, Convert, testing::ValuesIn(targets()));

template <class Out, class In>
std::vector<Out> map(const LoadedBinary& code, std::vector<In> in) {
  std::vector<Out> out(in.size());
  run(code, {in.data(), out.data()}, static_cast<std::int64_t>(in.size()));
  return out;
}

template <class Out, class In>
std::vector<Out> convert(const std::string& target, DType from, DType to, std::vector<In> in,
                         int lanes = 16) {
  return map<Out>(jit_map(target, from, to, [&](Value x) { return cast(x, to); }, lanes), in);
}

bool is_nan16(std::uint16_t bits, DType t) {
  return t == DType::f16 ? (bits & 0x7fff) > 0x7c00 : (bits & 0x7fff) > 0x7f80;
}

// All bit patterns whose low half is near a rounding boundary, and a spread of the others.
std::vector<float> floats() {
  std::vector<float> out;
  for (std::uint32_t high = 0; high < 65536; ++high)
    for (std::uint32_t low :
         {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u, 0x3001u, 0x7fffu, 0x8000u,
          0x8001u, 0xffffu, (high * 40503u) & 0xffffu})
      out.push_back(std::bit_cast<float>(high << 16 | low));
  return out;
}

}  // namespace

TEST_P(Convert, EveryF16AndBf16Loads) {
  std::vector<std::uint16_t> in(65536);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint16_t>(i);
  for (DType t : {DType::f16, DType::bf16})
    for (int lanes : {1, 8, 16}) {
      std::vector<float> out = convert<float>(GetParam(), t, DType::f32, in, lanes);
      for (std::size_t i = 0; i < in.size(); ++i) {
        float exact = t == DType::f16 ? f16_to_f32(in[i]) : bf16_to_f32(in[i]);
        if (std::isnan(exact))  // a signalling NaN may become quiet
          ASSERT_TRUE(std::isnan(out[i])) << t << " " << i;
        else
          ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]), std::bit_cast<std::uint32_t>(exact))
              << t << " " << i;
      }
    }
}

TEST_P(Convert, F32RoundsToF16AndBf16) {
  const std::vector<float> in = floats();
  for (DType t : {DType::f16, DType::bf16})
    for (int lanes : {1, 16}) {
      std::vector<std::uint16_t> out = map<std::uint16_t>(
          jit_map(GetParam(), DType::f32, t, [](Value x) { return x; }, lanes), in);
      for (std::size_t i = 0; i < in.size(); ++i) {
        std::uint16_t exact = t == DType::f16 ? f32_to_f16(in[i]) : f32_to_bf16(in[i]);
        if (std::isnan(in[i]))
          ASSERT_TRUE(is_nan16(out[i], t)) << t << " " << out[i];
        else
          ASSERT_EQ(out[i], exact) << t << " of " << in[i];
      }
    }
}

TEST_P(Convert, ACastToAShortFloatRoundsInTheRegister) {
  std::vector<float> in = {1 + 0x1p-11f, 1 + 0x1p-9f, 65520, 1e-8f, 3.14159f, -0.0f};
  for (DType t : {DType::f16, DType::bf16}) {
    std::vector<float> out = map<float>(
        jit_map(GetParam(), DType::f32, DType::f32, [&](Value x) { return cast(x, t); }), in);
    for (std::size_t i = 0; i < in.size(); ++i)
      EXPECT_EQ(out[i],
                t == DType::f16 ? f16_to_f32(f32_to_f16(in[i])) : bf16_to_f32(f32_to_bf16(in[i])))
          << t << " of " << in[i];
  }
}

TEST_P(Convert, F64AndLongIntegersRoundToShortFloatsOnce) {
  std::vector<double> in;
  for (int e = -160; e <= 130; ++e)
    for (double m : {1.0, 1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11 - 0x1p-40, 1 + 0x1p-8,
                     1 + 0x1p-8 + 0x1p-45, 1 + 3 * 0x1p-8 - 0x1p-45, 1.7, 2 - 0x1p-52})
      for (double s : {1.0, -1.0}) in.push_back(s * std::ldexp(m, e));
  in.insert(in.end(), {0.0, -0.0, INFINITY, -INFINITY, 1e308});
  for (DType t : {DType::f16, DType::bf16}) {
    std::vector<std::uint16_t> out = convert<std::uint16_t>(GetParam(), DType::f64, t, in, 8);
    for (std::size_t i = 0; i < in.size(); ++i)
      ASSERT_EQ(out[i], t == DType::f16 ? f64_to_f16(in[i]) : f64_to_bf16(in[i]))
          << t << " " << in[i];
    out = convert<std::uint16_t>(GetParam(), DType::f64, t, std::vector<double>{NAN}, 8);
    EXPECT_TRUE(is_nan16(out[0], t));
  }
  // 2^24 + 2^15 + 1 would be a tie for bf16 if it went through f32.
  std::vector<std::int32_t> whole = {(1 << 24) + (1 << 16) + 1, (1 << 30) + (1 << 22) + 1, -65519,
                                     7};
  for (DType t : {DType::f16, DType::bf16}) {
    std::vector<std::uint16_t> out = convert<std::uint16_t>(GetParam(), DType::i32, t, whole, 8);
    for (std::size_t i = 0; i < whole.size(); ++i)
      EXPECT_EQ(out[i], t == DType::f16 ? f64_to_f16(whole[i]) : f64_to_bf16(whole[i])) << whole[i];
  }
}

template <class T, class F>
void check_saturation(const std::string& target, DType from, DType to, int lanes) {
  using Limits = std::numeric_limits<T>;
  std::vector<F> in = {
      F(0),       F(-0.0),  F(0.9),          F(-0.9),         F(1.5),       F(-1.5),
      F(127.9),   F(128),   F(-129),         F(255),          F(256),       F(-1),
      F(32768),   F(65536), F(2147483648.0), F(4294967296.0), F(9.3e18),    F(1.9e19),
      F(-9.3e18), F(1e30),  F(-1e30),        F(INFINITY),     F(-INFINITY), F(NAN)};
  std::vector<T> out = convert<T>(target, from, to, in, lanes);
  for (std::size_t i = 0; i < in.size(); ++i) {
    T exact;
    if (std::isnan(in[i]))
      exact = 0;
    else if (in[i] <= static_cast<F>(Limits::min()))
      exact = Limits::min();
    else if (in[i] >= static_cast<F>(Limits::max()))
      exact = Limits::max();
    else
      exact = static_cast<T>(in[i]);
    ASSERT_EQ(out[i], exact) << from << " " << in[i] << " to " << to;
  }
}

TEST_P(Convert, FloatToIntegerSaturatesAndNaNIsZero) {
  for (int lanes : {1, 8}) {
    check_saturation<std::int8_t, float>(GetParam(), DType::f32, DType::i8, lanes);
    check_saturation<std::uint8_t, float>(GetParam(), DType::f32, DType::u8, lanes);
    check_saturation<std::int16_t, float>(GetParam(), DType::f32, DType::i16, lanes);
    check_saturation<std::uint16_t, float>(GetParam(), DType::f32, DType::u16, lanes);
    check_saturation<std::int32_t, float>(GetParam(), DType::f32, DType::i32, lanes);
    check_saturation<std::uint32_t, float>(GetParam(), DType::f32, DType::u32, lanes);
    check_saturation<std::int64_t, float>(GetParam(), DType::f32, DType::i64, lanes);
    check_saturation<std::uint64_t, float>(GetParam(), DType::f32, DType::u64, lanes);
    check_saturation<std::int32_t, double>(GetParam(), DType::f64, DType::i32, lanes);
    check_saturation<std::uint64_t, double>(GetParam(), DType::f64, DType::u64, lanes);
  }
}

TEST_P(Convert, IntegersWidenBySignAndWrap) {
  std::vector<std::int8_t> bytes = {0, 1, -1, 127, -128};
  EXPECT_EQ(convert<std::int64_t>(GetParam(), DType::i8, DType::i64, bytes),
            (std::vector<std::int64_t>{0, 1, -1, 127, -128}));
  EXPECT_EQ(convert<std::uint16_t>(GetParam(), DType::i8, DType::u16, bytes),
            (std::vector<std::uint16_t>{0, 1, 65535, 127, 65408}));
  EXPECT_EQ(convert<float>(GetParam(), DType::u8, DType::f32, bytes),
            (std::vector<float>{0, 1, 255, 127, 128}));
  EXPECT_EQ(convert<std::int8_t>(GetParam(), DType::i32, DType::i8,
                                 std::vector<std::int32_t>{300, -129, 128}),
            (std::vector<std::int8_t>{44, 127, -128}));
  EXPECT_EQ(convert<float>(GetParam(), DType::u64, DType::f32,
                           std::vector<std::uint64_t>{~0ull, 1ull << 63, 3}),
            (std::vector<float>{0x1p64f, 0x1p63f, 3}));
}

TEST_P(Convert, BooleansAreZeroAndOne) {
  std::vector<float> in = {0.0f, -0.0f, 0.5f, NAN, INFINITY, -3};
  EXPECT_EQ(convert<std::uint8_t>(GetParam(), DType::f32, DType::b1, in),
            (std::vector<std::uint8_t>{0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(convert<float>(GetParam(), DType::b1, DType::f32, std::vector<std::uint8_t>{0, 1, 1}),
            (std::vector<float>{0, 1, 1}));
  EXPECT_EQ(
      convert<std::int16_t>(GetParam(), DType::b1, DType::i16, std::vector<std::uint8_t>{1, 0}),
      (std::vector<std::int16_t>{1, 0}));
}

}  // namespace hone::llvm
