#include "verify/onnx/numbers.h"

#include <algorithm>
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

template <class T>
std::optional<std::vector<double>> raw_numbers(std::span<const std::byte> raw, std::int64_t count) {
  std::vector<double> out;
  if (raw.size() != sizeof(T) * static_cast<std::size_t>(count)) return std::nullopt;
  for (std::int64_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(&x, raw.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    const auto number = static_cast<double>(x);
    out.push_back(std::is_integral_v<T> ? std::clamp(number, -most_whole, most_whole) : number);
  }
  return out;
}

}  // namespace

std::optional<Numbers> numbers_of(const Tensor& t) {
  constexpr std::int64_t most = 1 << 20;
  Numbers out;
  out.dims = t.dims;
  const std::int64_t n = out.count();
  if (t.external || t.segment || !t.typed.empty() || !t.strings.empty() || !t.raw || n > most)
    return std::nullopt;
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
