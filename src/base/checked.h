// Overflow-safe size arithmetic. All sizes from files and shapes are combined here.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"

namespace hone {

inline std::optional<std::int64_t> try_add(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}

inline std::optional<std::int64_t> try_sub(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_sub_overflow(a, b, &r)) return std::nullopt;
  return r;
}

inline std::optional<std::int64_t> try_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}

// Throw UserError naming both operands when the result does not fit in 64 bits.
inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  if (auto r = try_add(a, b)) return *r;
  throw UserError("size: ", a, " + ", b, " does not fit in 64 bits; is a size in the model wrong?");
}
inline std::int64_t checked_sub(std::int64_t a, std::int64_t b) {
  if (auto r = try_sub(a, b)) return *r;
  throw UserError("size: ", a, " - ", b, " does not fit in 64 bits; is a size in the model wrong?");
}
inline std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  if (auto r = try_mul(a, b)) return *r;
  throw UserError("size: ", a, " * ", b, " does not fit in 64 bits; is a size in the model wrong?");
}

// Mathematical floor division and its remainder (sign of the divisor). Divisor must not be 0.
inline std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == -1) return checked_sub(0, a);  // INT64_MIN / -1 traps
  std::int64_t q = a / b;
  return (a % b != 0 && (a % b < 0) != (b < 0)) ? q - 1 : q;
}
inline std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  return b == -1 ? 0 : a - floor_div(a, b) * b;
}

inline std::int64_t round_up(std::int64_t n, std::int64_t to) {
  return checked_mul(floor_div(checked_add(n, to - 1), to), to);
}

}  // namespace hone
