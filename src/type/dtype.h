// Element types and their conversions. An element of fewer than eight bits takes a whole byte in
// memory; it is packed only in files that require it.
#pragma once

#include <bit>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string_view>

namespace hone {

enum class DType : std::uint8_t {
  b1,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f16,
  bf16,
  f32,
  f64,
  // Small dtypes: can be moved, selected and cast, but not computed with.
  i2,
  u2,
  i4,
  u4,
  f4e2m1,
  f8e4m3fn,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  f8e8m0,
  // Strings, as 64-bit numbers (type/text.h): can be moved, selected and compared.
  text,
};
inline constexpr int dtype_count = 24, computed_dtype_count = 13;

struct DTypeInfo {
  std::string_view name;  // spelled the same in C++, text IR and errors: "f32", "bool", ...
  int bytes;              // per element
  bool is_float;
  bool is_signed;
  int bits = 8 * bytes;  // significant bits: the low ones
};

const DTypeInfo& info(DType);
std::optional<DType> dtype_from_name(std::string_view);
inline int byte_size(DType t) { return info(t).bytes; }
inline int bit_size(DType t) { return info(t).bits; }
constexpr bool is_small(DType t) { return t > DType::f64 && t != DType::text; }
// Elements are codes, not numbers to compute with.
constexpr bool is_coded(DType t) { return t > DType::f64; }
inline bool is_float(DType t) { return info(t).is_float; }
inline bool is_integer(DType t) { return !info(t).is_float && t != DType::b1 && t != DType::text; }
inline bool is_signed(DType t) { return info(t).is_signed; }
std::ostream& operator<<(std::ostream&, DType);

// IEEE 754 binary16 and bfloat16 against f32, round to nearest even; NaN stays NaN.
float f16_to_f32(std::uint16_t);
std::uint16_t f32_to_f16(float);
std::uint16_t f64_to_f16(double);  // one rounding
inline float bf16_to_f32(std::uint16_t h) { return std::bit_cast<float>(std::uint32_t{h} << 16); }
std::uint16_t f32_to_bf16(float);
std::uint16_t f64_to_bf16(double);  // one rounding

// How the codes of a small float dtype (f4e2m1, f8...) represent numbers. f8e8m0: exponent only.
struct SmallFloat {
  int mantissa;        // stored bits
  int least_exponent;  // of a normal number
  // Codes without the sign bit: of the largest number, of infinity and of NaN (0: does not exist).
  int largest, infinity, nan;
  bool has_negative_zero = true;  // if false, the code of -0 is the only NaN
  bool has_sign = true;
};
const SmallFloat& small_float(DType);
// Rounds once to nearest, ties to even (f8e8m0: the magnitude, ties up). Overflow gives infinity,
// or NaN without an infinity, or the largest number without either (NaN then gives -0).
std::uint8_t f64_to_small(DType, double);
double small_to_f64(DType, std::uint8_t code);  // bits above those of the dtype are ignored
// Rounds to the nearest number of a float dtype, as a cast does.
double round_real(DType, double);
// The dtype that holds the codes of a coded dtype: integers keep their values.
constexpr DType code_dtype(DType coded) {
  if (coded == DType::text) return DType::u64;
  return coded == DType::i2 || coded == DType::i4 ? DType::i8 : DType::u8;
}

}  // namespace hone
