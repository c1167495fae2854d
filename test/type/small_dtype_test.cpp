// Small floats against their published layouts, with code independent of the conversions.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "type/array.h"

namespace hone {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Layout {
  DType dtype;
  int exponent_bits, mantissa_bits, bias;
  bool is_finite;  // no infinity
  bool is_unsigned_zero;
};

// IEEE-like layouts; `number` handles the special codes at the top.
constexpr Layout layouts[] = {
    {DType::f4e2m1, 2, 1, 1, true, false},     {DType::f8e4m3fn, 4, 3, 7, true, false},
    {DType::f8e4m3fnuz, 4, 3, 8, true, true},  {DType::f8e5m2, 5, 2, 15, false, false},
    {DType::f8e5m2fnuz, 5, 2, 16, true, true},
};

// Decodes by fields, as the papers define it.
double number(const Layout& l, int code) {
  const int sign = code >> (l.exponent_bits + l.mantissa_bits) & 1;
  const int exponent = code >> l.mantissa_bits & ((1 << l.exponent_bits) - 1);
  const int mantissa = code & ((1 << l.mantissa_bits) - 1);
  const int top = (1 << l.exponent_bits) - 1;
  if (l.is_unsigned_zero && sign && !exponent && !mantissa) return NAN;
  if (l.dtype == DType::f8e4m3fn && exponent == top && mantissa == 7) return NAN;
  if (!l.is_finite && exponent == top) return mantissa ? NAN : sign ? -infinity : infinity;
  const double fraction = std::ldexp(mantissa, -l.mantissa_bits) + (exponent ? 1 : 0);
  return (sign ? -1 : 1) * std::ldexp(fraction, std::max(exponent, 1) - l.bias);
}

int codes_of(const Layout& l) { return 1 << (1 + l.exponent_bits + l.mantissa_bits); }

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

TEST(SmallDtype, EveryCodeMeansWhatItsFieldsSay) {
  for (const Layout& l : layouts)
    for (int code = 0; code < codes_of(l); ++code)
      EXPECT_TRUE(same(small_to_f64(l.dtype, static_cast<std::uint8_t>(code)), number(l, code)))
          << l.dtype << " " << code << ": "
          << small_to_f64(l.dtype, static_cast<std::uint8_t>(code));
  for (int code = 0; code < 255; ++code)
    EXPECT_EQ(small_to_f64(DType::f8e8m0, static_cast<std::uint8_t>(code)),
              std::ldexp(1.0, code - 127));
  EXPECT_TRUE(std::isnan(small_to_f64(DType::f8e8m0, 255)));
}

TEST(SmallDtype, ANaNKeepsItsCodeInItsOwnDtypeOnly) {
  for (const Layout& l : layouts)
    for (int code = 0; code < codes_of(l); ++code) {
      const double x = small_to_f64(l.dtype, static_cast<std::uint8_t>(code));
      EXPECT_EQ(f64_to_small(l.dtype, x), code) << l.dtype;
      if (!std::isnan(x)) continue;
      for (const Layout& other : layouts) {
        if (other.dtype == l.dtype) continue;
        EXPECT_EQ(f64_to_small(other.dtype, x), f64_to_small(other.dtype, std::nan("")));
      }
      EXPECT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(x)), 0x7fc00000U);
    }
}

TEST(SmallDtype, PublishedNumbers) {
  auto number = [](DType t, int code) { return small_to_f64(t, static_cast<std::uint8_t>(code)); };
  EXPECT_EQ(number(DType::f8e4m3fn, 0x7e), 448);
  EXPECT_EQ(number(DType::f8e4m3fn, 0x01), 0x1p-9);
  EXPECT_EQ(number(DType::f8e4m3fnuz, 0x7f), 240);
  EXPECT_EQ(number(DType::f8e4m3fnuz, 0x01), 0x1p-10);
  EXPECT_EQ(number(DType::f8e5m2, 0x7b), 57344);
  EXPECT_EQ(number(DType::f8e5m2, 0x01), 0x1p-16);
  EXPECT_EQ(number(DType::f8e5m2fnuz, 0x7f), 57344);
  EXPECT_EQ(number(DType::f8e5m2fnuz, 0x01), 0x1p-17);
  EXPECT_EQ(number(DType::f4e2m1, 0x7), 6);
  EXPECT_EQ(number(DType::f4e2m1, 0x9), -0.5);
}

// The unsigned code nearest to a >= 0, by linear search; ties go to the even one. One step beyond
// the largest number counts as a number: values nearer to it are too large.
int nearest(const std::vector<double>& numbers, double a) {
  const double last = numbers.back(), beyond = last + (last - numbers[numbers.size() - 2]);
  if (a >= beyond) return -1;
  int best = -1;
  double least = infinity;
  auto offer = [&](int code, double x) {
    const double distance = std::fabs(x - a);
    if (distance < least || (distance == least && code % 2 == 0)) best = code, least = distance;
  };
  const int count = static_cast<int>(numbers.size());
  for (int code = 0; code < count; ++code) offer(code, numbers[static_cast<std::size_t>(code)]);
  offer(count, beyond);
  return best == count ? -1 : best;
}

// The finite numbers without sign, by code.
std::vector<double> numbers_of(const Layout& l) {
  std::vector<double> out;
  for (int code = 0; code < codes_of(l) / 2 && std::isfinite(number(l, code)); ++code)
    out.push_back(number(l, code));
  return out;
}

void expect_nearest(const Layout& l, const std::vector<double>& numbers, double x) {
  const double got = small_to_f64(l.dtype, f64_to_small(l.dtype, x));
  if (std::isnan(x) && l.dtype != DType::f4e2m1) {
    EXPECT_TRUE(std::isnan(got)) << l.dtype;
    return;
  }
  if (std::isnan(x)) {
    EXPECT_TRUE(same(got, -0.0));
    return;
  }
  const int code = std::isinf(x) ? -1 : nearest(numbers, std::fabs(x));
  double expected = code >= 0                  ? numbers[static_cast<std::size_t>(code)]
                    : !l.is_finite             ? infinity
                    : l.dtype == DType::f4e2m1 ? 6
                                               : NAN;
  if (std::signbit(x)) expected = -expected;
  if (l.is_unsigned_zero && expected == 0) expected = 0;
  EXPECT_TRUE(same(got, expected))
      << l.dtype << " of " << x << ": " << got << ", expected " << expected;
}

TEST(SmallDtype, EveryF16AndBf16RoundsToTheNearest) {
  for (const Layout& l : layouts) {
    const std::vector<double> numbers = numbers_of(l);
    for (int bits = 0; bits < 65536; ++bits) {
      expect_nearest(l, numbers, f16_to_f32(static_cast<std::uint16_t>(bits)));
      expect_nearest(l, numbers, bf16_to_f32(static_cast<std::uint16_t>(bits)));
    }
  }
}

TEST(SmallDtype, RoundsOnceFromDouble) {
  // The midpoint of two numbers, and the adjacent doubles.
  for (const Layout& l : layouts)
    for (int code = 0; code + 1 < codes_of(l) / 2; ++code) {
      const double a = number(l, code), b = number(l, code + 1);
      if (!std::isfinite(a) || !std::isfinite(b)) continue;
      const double half = (a + b) / 2;
      for (double x : {half, std::nextafter(half, 0), std::nextafter(half, infinity)})
        for (double signed_x : {x, -x}) expect_nearest(l, numbers_of(l), signed_x);
    }
}

TEST(SmallDtype, ExponentsAloneRoundToTheNearestPowerOfTwo) {
  auto cast = [](double x) { return small_to_f64(DType::f8e8m0, f64_to_small(DType::f8e8m0, x)); };
  EXPECT_EQ(cast(1), 1);
  EXPECT_EQ(cast(-4), 4);
  EXPECT_EQ(cast(1.5), 2);
  EXPECT_EQ(cast(std::nextafter(1.5, 0)), 1);
  EXPECT_EQ(cast(0), 0x1p-127);
  EXPECT_EQ(cast(0x1p-300), 0x1p-127);
  EXPECT_EQ(cast(0x1.8p-127), 0x1p-126);
  EXPECT_EQ(cast(0x1p127), 0x1p127);
  EXPECT_TRUE(std::isnan(cast(0x1.8p127)));
  EXPECT_TRUE(std::isnan(cast(infinity)));
  EXPECT_TRUE(std::isnan(cast(NAN)));
}

TEST(SmallDtype, IntegersOfArraysSaturateAndWrap) {
  struct Range {
    DType dtype;
    std::int64_t low, high;
  };
  for (auto [t, low, high] : {Range{DType::i2, -2, 1}, Range{DType::u2, 0, 3},
                              Range{DType::i4, -8, 7}, Range{DType::u4, 0, 15}}) {
    Array a = Array::zeros(t, {1});
    const std::int64_t count = high - low + 1;
    for (std::int64_t n = -300; n <= 300; ++n) {
      a.set_integer(0, n);
      EXPECT_EQ(((a.integer(0) - n) % count + count) % count, 0) << t << " " << n;
      EXPECT_TRUE(a.integer(0) >= low && a.integer(0) <= high);
      a.set_real(0, static_cast<double>(n) + (n < 0 ? -0.5 : 0.5));
      EXPECT_EQ(a.integer(0), std::clamp(n, low, high)) << t << " " << n;
    }
    a.set_real(0, NAN);
    EXPECT_EQ(a.real(0), 0);
    // Bits above those of the dtype are ignored.
    for (int byte = 0; byte < 256; ++byte) {
      a.writable<std::uint8_t>()[0] = static_cast<std::uint8_t>(byte);
      const std::int64_t code = byte % count;
      EXPECT_EQ(a.integer(0), code > high ? code - count : code);
    }
  }
}

}  // namespace
}  // namespace hone
