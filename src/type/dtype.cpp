#include "type/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <ostream>

#include "base/error.h"

namespace hone {

namespace {

constexpr DTypeInfo infos[dtype_count] = {
    {"bool", 1, false, false},     {"i8", 1, false, true},        {"i16", 2, false, true},
    {"i32", 4, false, true},       {"i64", 8, false, true},       {"u8", 1, false, false},
    {"u16", 2, false, false},      {"u32", 4, false, false},      {"u64", 8, false, false},
    {"f16", 2, true, true},        {"bf16", 2, true, true},       {"f32", 4, true, true},
    {"f64", 8, true, true},        {"i2", 1, false, true, 2},     {"u2", 1, false, false, 2},
    {"i4", 1, false, true, 4},     {"u4", 1, false, false, 4},    {"f4e2m1", 1, true, true, 4},
    {"f8e4m3fn", 1, true, true},   {"f8e4m3fnuz", 1, true, true}, {"f8e5m2", 1, true, true},
    {"f8e5m2fnuz", 1, true, true}, {"f8e8m0", 1, true, false},    {"text", 8, false, false},
};

// From f4e2m1 on, in dtype order.
constexpr SmallFloat small_floats[] = {
    {1, 0, 0x7, 0, 0},
    {3, -6, 0x7e, 0, 0x7f},
    {3, -7, 0x7f, 0, 0x80, false},
    {2, -14, 0x7b, 0x7c, 0x7e},
    {2, -15, 0x7f, 0, 0x80, false},
    {0, -127, 0xfe, 0, 0xff, true, false},
};

// Rounds a finite or infinite double to a binary format with `mantissa` stored bits, least normal
// exponent `min_exp` and greatest exponent `max_exp`, and returns its bits.
std::uint16_t round_to(double x, int mantissa, int min_exp, int max_exp) {
  const int bias = max_exp, width = 15 - mantissa;  // exponent bits
  std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  std::uint16_t infinity = static_cast<std::uint16_t>(((1 << width) - 1) << mantissa);
  if (std::isnan(x)) return sign | infinity | static_cast<std::uint16_t>(1 << (mantissa - 1));
  double a = std::fabs(x);
  if (std::isinf(a)) return sign | infinity;
  if (a == 0) return sign;
  int exp = std::ilogb(a);
  if (exp < min_exp) exp = min_exp;
  // Units in the last place of this binade; nearbyint rounds to even.
  double units = std::nearbyint(std::ldexp(a, mantissa - exp));
  std::uint32_t bits = static_cast<std::uint32_t>(units);
  std::uint32_t one = 1u << mantissa;
  if (bits >= 2 * one) {
    bits /= 2;
    ++exp;
  }
  if (exp > max_exp) return sign | infinity;
  if (bits < one) return sign | static_cast<std::uint16_t>(bits);  // subnormal
  return sign | static_cast<std::uint16_t>(((exp + bias) << mantissa) + (bits - one));
}

}  // namespace

const DTypeInfo& info(DType t) { return infos[static_cast<int>(t)]; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (int i = 0; i < dtype_count; ++i)
    if (infos[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

std::ostream& operator<<(std::ostream& out, DType t) { return out << info(t).name; }

float f16_to_f32(std::uint16_t h) {
  std::uint32_t sign = std::uint32_t{h & 0x8000u} << 16, exp = (h >> 10) & 31, frac = h & 0x3ff;
  if (exp == 31) return std::bit_cast<float>(sign | 0x7f800000u | (frac << 13));
  if (exp == 0) {
    float f = static_cast<float>(frac) * 0x1p-24f;
    return sign ? -f : f;
  }
  return std::bit_cast<float>(sign | ((exp + 112) << 23) | (frac << 13));
}

std::uint16_t f64_to_f16(double x) { return round_to(x, 10, -14, 15); }
std::uint16_t f32_to_f16(float x) { return f64_to_f16(x); }
std::uint16_t f64_to_bf16(double x) { return round_to(x, 7, -126, 127); }
std::uint16_t f32_to_bf16(float x) { return f64_to_bf16(x); }

const SmallFloat& small_float(DType t) {
  HONE_ASSERT(is_small(t) && is_float(t), t, " is no small float");
  return small_floats[static_cast<int>(t) - static_cast<int>(DType::f4e2m1)];
}

namespace {

// The number of format steps from 0 to a >= 0, which is the code of an element without its sign.
int rounded_code(const SmallFloat& f, double a) {
  if (!f.has_sign) {
    if (a < std::ldexp(1.0, f.least_exponent)) return 0;
    const int exponent = std::ilogb(a);
    return exponent - f.least_exponent + (a >= std::ldexp(1.5, exponent));
  }
  const int exponent = a == 0 ? f.least_exponent : std::max(std::ilogb(a), f.least_exponent);
  const double steps = std::nearbyint(std::ldexp(a, f.mantissa - exponent));
  return ((exponent - f.least_exponent) << f.mantissa) + static_cast<int>(steps);
}

// A NaN that encodes its code and dtype, so that operations that only move numbers keep the bits.
double nan_of_code(DType t, int code) {
  constexpr std::uint64_t quiet = 0x7ff8000000000000;
  return std::bit_cast<double>(quiet | (static_cast<std::uint64_t>(t) + 1) << 8 |
                               static_cast<std::uint64_t>(code));
}

std::optional<std::uint8_t> code_of_nan(DType t, double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  if ((bits >> 8 & 0xff) != static_cast<std::uint64_t>(t) + 1) return std::nullopt;
  return static_cast<std::uint8_t>(bits);
}

}  // namespace

std::uint8_t f64_to_small(DType t, double x) {
  const SmallFloat& f = small_float(t);
  if (std::isnan(x))
    if (const auto code = code_of_nan(t, x)) return *code;
  const int beyond = f.infinity != 0 ? f.infinity : f.nan != 0 ? f.nan : f.largest;
  int code = beyond;
  if (std::isnan(x))
    code = f.nan != 0 ? f.nan : 1 << (bit_size(t) - 1);
  else if (!std::isinf(x))
    code = rounded_code(f, std::fabs(x));
  if (code > f.largest && !std::isnan(x)) code = beyond;
  const bool keeps_sign = f.has_sign && (f.has_negative_zero || (code != 0 && code != f.nan));
  if (keeps_sign && std::signbit(x) && !std::isnan(x)) code |= 1 << (bit_size(t) - 1);
  return static_cast<std::uint8_t>(code);
}

double small_to_f64(DType t, std::uint8_t byte) {
  const SmallFloat& f = small_float(t);
  const int bits = bit_size(t), code = byte & ((1 << bits) - 1);
  if (!f.has_sign)
    return code == f.nan ? nan_of_code(t, code) : std::ldexp(1.0, code + f.least_exponent);
  const int sign = 1 << (bits - 1), low = code & (sign - 1);
  if (f.has_negative_zero ? low > std::max(f.largest, f.infinity) : code == f.nan)
    return nan_of_code(t, code);
  const double direction = code & sign ? -1 : 1;
  if (f.infinity != 0 && low == f.infinity) return direction * HUGE_VAL;
  const int one = 1 << f.mantissa, binade = low >> f.mantissa;
  if (binade == 0) return direction * std::ldexp(low, f.least_exponent - f.mantissa);
  return direction * std::ldexp(low % one + one, binade - 1 + f.least_exponent - f.mantissa);
}

double round_real(DType t, double x) {
  switch (t) {
    case DType::f32:
      return static_cast<float>(x);
    case DType::f16:
      return f16_to_f32(f64_to_f16(x));
    case DType::bf16:
      return bf16_to_f32(f64_to_bf16(x));
    default:
      return is_small(t) ? small_to_f64(t, f64_to_small(t, x)) : x;
  }
}

}  // namespace hone
