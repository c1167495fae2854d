#include "type/dtype.h"

#include <cmath>
#include <ostream>

#include "base/error.h"

namespace hone {

namespace {

constexpr DTypeInfo infos[dtype_count] = {
    {"bool", 1, false, false}, {"i8", 1, false, true},   {"i16", 2, false, true},
    {"i32", 4, false, true},   {"i64", 8, false, true},  {"u8", 1, false, false},
    {"u16", 2, false, false},  {"u32", 4, false, false}, {"u64", 8, false, false},
    {"f16", 2, true, true},    {"bf16", 2, true, true},  {"f32", 4, true, true},
    {"f64", 8, true, true},
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

}  // namespace hone
