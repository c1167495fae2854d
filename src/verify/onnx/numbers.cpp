#include "verify/onnx/numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "type/text.h"

namespace hone::onnx {

std::int64_t Numbers::count() const {
  std::int64_t n = 1;
  for (std::int64_t d : dims) n *= d;
  return n;
}

double tolerance(DType t) {
  return t == DType::f16 ? 2e-3 : t == DType::bf16 ? 2e-2 : is_float(t) ? 1e-5 : 0;
}

double allowed_difference(const Numbers& n) {
  double most = 0;
  for (std::size_t i = 0; i < n.values.size(); ++i)
    if (std::isfinite(n.values[i]) && !n.is_open(i)) most = std::max(most, std::fabs(n.values[i]));
  // What is below the least normal number, or the least number, may become zero.
  constexpr double least_half = 0x1p-24, least_single = 0x1p-126;
  const bool is_single = n.dtype == DType::f32 || n.dtype == DType::bf16;
  return tolerance(n.dtype) * most + (n.dtype == DType::f16 ? least_half
                                      : is_single           ? least_single
                                                            : 0);
}

double largest_number(DType t) {
  if (t == DType::f64) return std::numeric_limits<double>::max();
  if (t == DType::f16) return 65504;
  if (is_float(t)) return std::numeric_limits<float>::max();
  constexpr double enough = 1e6;
  return std::min(std::ldexp(1, t == DType::b1 ? 1 : bit_size(t) - is_signed(t)) - 1, enough);
}

namespace {

double half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return exponent == 0 ? sign * std::ldexp(fraction, -24)
                       : sign * std::ldexp(1024 + fraction, exponent - 25);
}

double whole(std::int64_t n) { return std::clamp(static_cast<double>(n), -most_whole, most_whole); }

template <class T>
std::optional<std::vector<double>> raw_numbers(std::span<const std::byte> raw, std::int64_t count) {
  std::vector<double> out;
  if (raw.size() != sizeof(T) * static_cast<std::size_t>(count)) return std::nullopt;
  for (std::int64_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(&x, raw.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    if constexpr (std::is_same_v<T, std::uint64_t>)
      out.push_back(x > static_cast<std::uint64_t>(most_whole) ? most_whole
                                                               : static_cast<double>(x));
    else if constexpr (std::is_integral_v<T>)
      out.push_back(whole(static_cast<std::int64_t>(x)));
    else
      out.push_back(static_cast<double>(x));
  }
  return out;
}

// Numbers of seven bits, the lowest first; all bytes but the last have the highest bit.
void add_varints(std::span<const std::byte> bytes, std::vector<std::uint64_t>& out) {
  std::uint64_t n = 0;
  int shift = 0;
  for (std::byte b : bytes) {
    const auto bits = static_cast<std::uint64_t>(b);
    if (shift < 64) n |= (bits & 127) << shift;
    shift += 7;
    if (bits & 128) continue;
    out.push_back(n);
    n = 0;
    shift = 0;
  }
}

void add_fixed(std::span<const std::byte> bytes, std::size_t width,
               std::vector<std::uint64_t>& out) {
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, width);
    out.push_back(bits);
  }
}

// The bits of the elements in float_data, int32_data, int64_data or double_data.
std::optional<std::vector<std::uint64_t>> typed_bits(const Tensor& t, TypedData::Kind kind) {
  std::vector<std::uint64_t> out;
  for (const TypedData& d : t.typed) {
    if (d.kind != kind) return std::nullopt;
    if (d.type != WireType::bytes)
      out.push_back(d.value);
    else if (kind == TypedData::Kind::f32 || kind == TypedData::Kind::f64)
      add_fixed(d.packed, kind == TypedData::Kind::f32 ? 4 : 8, out);
    else
      add_varints(d.packed, out);
  }
  return out;
}

// The field of onnx.proto for elements of a dtype that raw_data does not hold.
TypedData::Kind field_of(DType t) {
  using Data = TypedData::Kind;
  if (t == DType::f32) return Data::f32;
  if (t == DType::f64) return Data::f64;
  if (t == DType::i64) return Data::i64;
  return t == DType::u32 || t == DType::u64 ? Data::u64 : Data::i32;
}

double unsigned_whole(std::uint64_t n) {
  return n > static_cast<std::uint64_t>(most_whole) ? most_whole : static_cast<double>(n);
}

std::optional<Numbers> typed_numbers(const Tensor& t, DType dtype) {
  if (is_small(dtype)) return std::nullopt;
  const auto all = typed_bits(t, field_of(dtype));
  Numbers out{dtype, t.dims, {}};
  if (!all || std::ssize(*all) != out.count()) return std::nullopt;
  const auto number = [&](std::uint64_t bits) -> double {
    const auto low = static_cast<std::uint32_t>(bits);
    switch (dtype) {
      case DType::f16:
        return half(static_cast<std::uint16_t>(bits));
      case DType::bf16:
        return std::bit_cast<float>(low << 16);
      case DType::f32:
        return std::bit_cast<float>(low);
      case DType::f64:
        return std::bit_cast<double>(bits);
      case DType::b1:
        return bits != 0 ? 1 : 0;
      case DType::i64:
        return whole(static_cast<std::int64_t>(bits));
      case DType::u32:
      case DType::u64:
        return unsigned_whole(bits);
      default:
        return static_cast<std::int32_t>(low);
    }
  };
  for (std::uint64_t bits : *all) out.values.push_back(number(bits));
  return out;
}

// Elements of fewer than eight bits, the first in the lowest bits of a byte.
std::optional<std::vector<double>> packed_numbers(std::span<const std::byte> raw, DType t,
                                                  std::int64_t count) {
  const auto bits = static_cast<std::size_t>(bit_size(t)), each = 8 / bits,
             n = static_cast<std::size_t>(count);
  if (raw.size() != (n + each - 1) / each) return std::nullopt;
  std::vector<double> out;
  for (std::size_t i = 0; i < n; ++i) {
    const int code = static_cast<int>(raw[i / each]) >> (i % each * bits) & ((1 << bits) - 1);
    const int above = 1 << bits;
    out.push_back(is_signed(t) && code >= above / 2 ? code - above : code);
  }
  return out;
}

std::optional<std::vector<double>> raw_numbers_of(std::span<const std::byte> raw, DType t,
                                                  std::int64_t n) {
  switch (t) {
    case DType::f32:
      return raw_numbers<float>(raw, n);
    case DType::f64:
      return raw_numbers<double>(raw, n);
    case DType::b1: {
      auto out = raw_numbers<std::uint8_t>(raw, n);
      if (out)
        for (double& x : *out) x = x != 0 ? 1 : 0;
      return out;
    }
    case DType::u8:
      return raw_numbers<std::uint8_t>(raw, n);
    case DType::i8:
      return raw_numbers<std::int8_t>(raw, n);
    case DType::i16:
      return raw_numbers<std::int16_t>(raw, n);
    case DType::u16:
      return raw_numbers<std::uint16_t>(raw, n);
    case DType::i32:
      return raw_numbers<std::int32_t>(raw, n);
    case DType::u32:
      return raw_numbers<std::uint32_t>(raw, n);
    case DType::i64:
      return raw_numbers<std::int64_t>(raw, n);
    case DType::u64:
      return raw_numbers<std::uint64_t>(raw, n);
    case DType::f16:
    case DType::bf16: {
      auto out = raw_numbers<std::uint16_t>(raw, n);
      if (out)
        for (double& x : *out) {
          const auto bits = static_cast<std::uint16_t>(x);
          x = t == DType::f16 ? half(bits)
                              : std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
        }
      return out;
    }
    case DType::i4:
    case DType::u4:
    case DType::i2:
    case DType::u2:
      return packed_numbers(raw, t, n);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<DType> dtype_of(std::int64_t data_type) {
  using enum DType;
  static constexpr std::pair<int, DType> types[] = {
      {1, f32},  {2, u8},    {3, i8},        {4, u16},         {5, i16},     {6, i32},
      {7, i64},  {8, text},  {9, b1},        {10, f16},        {11, f64},    {12, u32},
      {13, u64}, {16, bf16}, {17, f8e4m3fn}, {18, f8e4m3fnuz}, {19, f8e5m2}, {20, f8e5m2fnuz},
      {21, u4},  {22, i4},   {23, f4e2m1},   {24, f8e8m0},     {25, u2},     {26, i2}};
  for (const auto& [number, dtype] : types)
    if (number == data_type) return dtype;
  return std::nullopt;
}

std::optional<Numbers> numbers_of(const Tensor& t) {
  constexpr std::int64_t most = 1 << 20;
  Numbers out;
  out.dims = t.dims;
  const std::int64_t n = out.count();
  const std::optional<DType> dtype = dtype_of(t.data_type);
  if (!dtype || t.external || t.segment || n < 0 || n > most) return std::nullopt;
  if (*dtype == DType::text) {
    if (std::ssize(t.strings) != n) return std::nullopt;
    out.dtype = *dtype;
    for (std::string_view text : t.strings)
      out.values.push_back(static_cast<double>(text_number(text)));
    return out;
  }
  if (!t.strings.empty()) return std::nullopt;
  if (!t.raw) return typed_numbers(t, *dtype);
  if (!t.typed.empty()) return std::nullopt;
  std::optional<std::vector<double>> numbers = raw_numbers_of(*t.raw, *dtype, n);
  if (!numbers) return std::nullopt;
  out.dtype = *dtype;
  out.values = std::move(*numbers);
  return out;
}

}  // namespace hone::onnx
