#include "verify/onnx/numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace hone::onnx {

std::int64_t Numbers::count() const {
  std::int64_t n = 1;
  for (std::int64_t d : dims) n *= d;
  return n;
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
    if constexpr (std::is_integral_v<T>)
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

std::optional<Numbers> typed_numbers(const Tensor& t) {
  using Data = TypedData::Kind;
  static constexpr struct {
    std::int32_t data_type;
    Data kind;
    DType dtype;
  } fields[] = {{1, Data::f32, DType::f32},  {2, Data::i32, DType::u8},  {3, Data::i32, DType::i8},
                {6, Data::i32, DType::i32},  {7, Data::i64, DType::i64}, {9, Data::i32, DType::b1},
                {10, Data::i32, DType::f16}, {11, Data::f64, DType::f64}};
  for (const auto& f : fields) {
    if (f.data_type != t.data_type) continue;
    const auto all = typed_bits(t, f.kind);
    Numbers out{f.dtype, t.dims, {}};
    if (!all || std::ssize(*all) != out.count()) return std::nullopt;
    for (std::uint64_t bits : *all)
      out.values.push_back(
          f.dtype == DType::f16  ? half(static_cast<std::uint16_t>(bits))
          : f.dtype == DType::b1 ? (bits != 0 ? 1.0 : 0.0)
          : f.kind == Data::f32  ? std::bit_cast<float>(static_cast<std::uint32_t>(bits))
          : f.kind == Data::f64  ? std::bit_cast<double>(bits)
          : f.kind == Data::i32  ? static_cast<std::int32_t>(static_cast<std::uint32_t>(bits))
                                 : whole(static_cast<std::int64_t>(bits)));
    return out;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Numbers> numbers_of(const Tensor& t) {
  constexpr std::int64_t most = 1 << 20;
  Numbers out;
  out.dims = t.dims;
  const std::int64_t n = out.count();
  if (t.external || t.segment || !t.strings.empty() || n > most) return std::nullopt;
  if (!t.raw) return typed_numbers(t);
  if (!t.typed.empty()) return std::nullopt;
  const auto of = [&]<class T>(DType dtype, T) -> std::optional<Numbers> {
    std::optional<std::vector<double>> numbers = raw_numbers<T>(*t.raw, n);
    if (!numbers) return std::nullopt;
    out.dtype = dtype;
    out.values = std::move(*numbers);
    return out;
  };
  switch (t.data_type) {  // the format's numbers
    case 1:
      return of(DType::f32, float());
    case 2:
      return of(DType::u8, std::uint8_t());
    case 3:
      return of(DType::i8, std::int8_t());
    case 6:
      return of(DType::i32, std::int32_t());
    case 7:
      return of(DType::i64, std::int64_t());
    case 9:
      return of(DType::b1, std::uint8_t());
    case 10: {
      std::optional<Numbers> bits = of(DType::f16, std::uint16_t());
      if (bits)
        for (double& x : bits->values) x = half(static_cast<std::uint16_t>(x));
      return bits;
    }
    case 11:
      return of(DType::f64, double());
    default:
      return std::nullopt;
  }
}

}  // namespace hone::onnx
