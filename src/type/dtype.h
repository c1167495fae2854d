// Element types and their conversions. Sub-byte elements are packed along the last axis in storage.
#pragma once

#include <bit>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string_view>

namespace hone {

enum class DType : std::uint8_t { b1, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64 };
inline constexpr int dtype_count = 13;

struct DTypeInfo {
  std::string_view name;  // spelled the same in C++, text IR and errors: "f32", "bool", ...
  int bytes;
  bool is_float;
  bool is_signed;
};

const DTypeInfo& info(DType);
std::optional<DType> dtype_from_name(std::string_view);
inline int byte_size(DType t) { return info(t).bytes; }
inline bool is_float(DType t) { return info(t).is_float; }
inline bool is_integer(DType t) { return !info(t).is_float && t != DType::b1; }
inline bool is_signed(DType t) { return info(t).is_signed; }
std::ostream& operator<<(std::ostream&, DType);

// IEEE 754 binary16 and bfloat16 against f32, round to nearest even; NaN stays NaN.
float f16_to_f32(std::uint16_t);
std::uint16_t f32_to_f16(float);
std::uint16_t f64_to_f16(double);  // one rounding
inline float bf16_to_f32(std::uint16_t h) { return std::bit_cast<float>(std::uint32_t{h} << 16); }
std::uint16_t f32_to_bf16(float);
std::uint16_t f64_to_bf16(double);  // one rounding

}  // namespace hone
