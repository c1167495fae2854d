#include "ops/eval.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <thread>

#include "base/checked.h"

namespace hone {

namespace {

std::int64_t wrap_small(DType t, std::int64_t n) {
  const std::int64_t span = std::int64_t{1} << bit_size(t), low = n & (span - 1);
  return is_signed(t) && low >= span / 2 ? low - span : low;
}

}  // namespace

std::int64_t wrap(DType t, std::int64_t n) {
  switch (t) {
    case DType::b1:
      return n != 0;
    case DType::i8:
      return static_cast<std::int8_t>(n);
    case DType::i16:
      return static_cast<std::int16_t>(n);
    case DType::i32:
      return static_cast<std::int32_t>(n);
    case DType::u8:
      return static_cast<std::uint8_t>(n);
    case DType::u16:
      return static_cast<std::uint16_t>(n);
    case DType::u32:
      return static_cast<std::uint32_t>(n);
    default:
      return is_small(t) ? wrap_small(t, n) : n;
  }
}

namespace {

struct Limits {
  std::int64_t low, high;
};

// For all integer dtypes but u64.
Limits limits(DType t) {
  int bits = bit_size(t);
  if (!is_signed(t)) return {0, (std::int64_t{1} << bits) - 1};
  std::int64_t high = static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - bits));
  return {-high - 1, high};
}

// A double that rounds to any narrower float as n itself would: inexact values are rounded to odd.
double sticky_real(DType t, std::int64_t n) {
  double x = integer_to_real(t, n);
  long double exact = t == DType::u64 ? static_cast<long double>(static_cast<std::uint64_t>(n))
                                      : static_cast<long double>(n);
  if (static_cast<long double>(x) == exact) return x;
  if (std::fabs(static_cast<long double>(x)) > std::fabs(exact)) x = std::nextafter(x, 0.0);
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) | 1);
}

}  // namespace

std::int64_t saturate(DType t, double x) {
  if (std::isnan(x)) return 0;
  if (t == DType::b1) return x != 0;
  if (t == DType::u64) {
    if (x <= 0) return 0;
    return x >= 0x1p64 ? -1 : static_cast<std::int64_t>(static_cast<std::uint64_t>(x));
  }
  auto [low, high] = limits(t);
  if (x <= static_cast<double>(low)) return low;
  return x >= static_cast<double>(high) ? high : static_cast<std::int64_t>(x);
}

Wide convert(const Wide& x, DType to) {
  Wide y(to, x.dims);
  std::size_t n = static_cast<std::size_t>(x.count());
  if (x.is_real() && y.is_real())
    y.reals = x.reals;
  else if (x.is_real() && to == DType::b1)
    for (std::size_t i = 0; i < n; ++i) y.integers[i] = x.reals[i] != 0;
  else if (x.is_real())
    for (std::size_t i = 0; i < n; ++i) y.integers[i] = saturate(to, x.reals[i]);
  else if (to == DType::f64)
    for (std::size_t i = 0; i < n; ++i) y.reals[i] = integer_to_real(x.dtype, x.integers[i]);
  else if (y.is_real())
    for (std::size_t i = 0; i < n; ++i) y.reals[i] = sticky_real(x.dtype, x.integers[i]);
  else
    for (std::size_t i = 0; i < n; ++i) y.integers[i] = wrap(to, x.integers[i]);
  if (y.is_real()) round_to_dtype(y);
  return y;
}

std::int64_t count_of(std::span<const std::int64_t> dims) {
  std::int64_t n = 1;
  for (std::int64_t d : dims) n = checked_mul(n, d);
  return n;
}

Sizes row_major(std::span<const std::int64_t> dims) {
  Sizes strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

AxisSplit split_at(std::span<const std::int64_t> dims, int axis) {
  AxisSplit s;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    std::int64_t d = dims[static_cast<std::size_t>(i)];
    (i < axis ? s.outer : i == axis ? s.size : s.inner) *= d;
  }
  return s;
}

namespace {

template <class T>
void copy_elements(std::vector<T>& to, const Box& to_box, const std::vector<T>& from,
                   const Box& from_box, std::span<const std::int64_t> dims) {
  Rows<2>(dims, {to_box.strides, from_box.strides})
      .each({to_box.base, from_box.base}, [&](auto& at, auto& step, std::int64_t n) {
        T* p = to.data() + at[0];
        const T* q = from.data() + at[1];
        if (step[0] == 1 && step[1] == 1) {
          std::copy(q, q + n, p);
          return;
        }
        for (std::int64_t i = 0; i < n; ++i) p[i * step[0]] = q[i * step[1]];
      });
}

}  // namespace

void copy_box(Wide& to, const Box& to_box, const Wide& from, const Box& from_box,
              std::span<const std::int64_t> dims) {
  HONE_ASSERT(to.is_real() == from.is_real(), "copy between ", to.dtype, " and ", from.dtype);
  if (to.is_real())
    copy_elements(to.reals, to_box, from.reals, from_box, dims);
  else
    copy_elements(to.integers, to_box, from.integers, from_box, dims);
}

Wide take_box(const Wide& from, const Box& box, Sizes dims) {
  Wide out(from.dtype, std::move(dims));
  copy_box(out, {0, row_major(out.dims)}, from, box, out.dims);
  return out;
}

void fill(Wide& w, const Wide& number) {
  if (w.is_real())
    std::fill(w.reals.begin(), w.reals.end(), number.reals.at(0));
  else
    std::fill(w.integers.begin(), w.integers.end(), number.integers.at(0));
}

void parallel_chunks(std::int64_t n, std::int64_t work,
                     const std::function<void(std::int64_t, std::int64_t)>& chunk) {
  constexpr std::int64_t pays = 1 << 20;
  auto threads = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  std::int64_t parts = work < pays ? 1 : std::max<std::int64_t>(1, std::min(threads, n));
  std::vector<std::thread> running;
  for (std::int64_t k = 1; k < parts; ++k)
    running.emplace_back(chunk, n * k / parts, n * (k + 1) / parts);
  chunk(0, n / parts);
  for (std::thread& t : running) t.join();
}

Join join_of(std::string_view word) {
  if (word == "sum" || word == "add") return Join::sum;
  if (word == "prod" || word == "mul") return Join::product;
  if (word == "max") return Join::maximum;
  if (word == "min") return Join::minimum;
  HONE_ASSERT(word == "set", "unknown reduction '", word, "'");
  return Join::set;
}

std::int64_t join(Join how, DType t, std::int64_t a, std::int64_t b) {
  switch (how) {
    case Join::sum:
      return wrap(t, static_cast<std::int64_t>(static_cast<std::uint64_t>(a) +
                                               static_cast<std::uint64_t>(b)));
    case Join::product:
      return wrap(t, static_cast<std::int64_t>(static_cast<std::uint64_t>(a) *
                                               static_cast<std::uint64_t>(b)));
    case Join::maximum:
      return integer_less(t, a, b) ? b : a;
    case Join::minimum:
      return integer_less(t, b, a) ? b : a;
    case Join::set:
      return b;
  }
  return b;
}

double real_start(Join how) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (how) {
    case Join::product:
      return 1;
    case Join::maximum:
      return -infinity;
    case Join::minimum:
      return infinity;
    default:
      return 0;
  }
}

std::int64_t integer_start(Join how, DType t) {
  switch (how) {
    case Join::product:
      return 1;
    case Join::maximum:
      return t == DType::u64 || t == DType::b1 ? 0 : limits(t).low;
    case Join::minimum:
      return t == DType::u64 ? -1 : t == DType::b1 ? 1 : limits(t).high;
    default:
      return 0;
  }
}

Wide starts(Join how, DType t, Sizes dims) {
  Wide w(t, std::move(dims));
  if (w.is_real())
    std::fill(w.reals.begin(), w.reals.end(), real_start(how));
  else
    std::fill(w.integers.begin(), w.integers.end(), integer_start(how, t));
  return w;
}

}  // namespace hone
