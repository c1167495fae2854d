// Strict values of a function, and inputs at which rules are most likely to fail.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "ir/function.h"
#include "ops/ops.h"
#include "ref/evaluate.h"

namespace hone {

using SymbolValues = std::map<std::string, std::int64_t, std::less<>>;

inline std::vector<Wide> evaluate_function(const Function& f, const std::vector<Wide>& inputs) {
  std::vector<Array> arrays;
  for (const Wide& w : inputs) arrays.push_back(narrow(w));
  return evaluate_wide(f, arrays, Mode::strict);
}

// The limits of an integer dtype and their neighbours, large numbers and ordinary ones.
inline std::int64_t interesting_integer(std::mt19937& rng, DType t) {
  if (t == DType::b1) return rng() % 2;
  const std::uint64_t top = std::uint64_t{1} << (bit_size(t) - 1);
  const std::uint64_t ends[] = {top, top - 1, top + 1, top - 2, ~std::uint64_t{0}, 2 * top - 2};
  const auto of = rng() % 4;
  if (of == 0) return static_cast<std::int64_t>(ends[rng() % std::size(ends)]);
  if (of == 1) return static_cast<std::int64_t>(std::uint64_t{rng()} << (rng() % 33));
  return static_cast<std::int64_t>(rng() % 9) - 4;
}

// Numbers at which rules are likely to fail, mixed with ordinary ones.
inline double interesting_number(std::mt19937& rng, DType t) {
  const double extremes[] = {0.0,  -0.0,    1.0,  -1.0,  INFINITY, -INFINITY, NAN,  1e-310, 1e-40,
                             6e-8, 65504.0, 3e38, -3e38, 1e300,    2.0,       1e-4, -1e-38, 1e-20};
  if (rng() % 2) return extremes[rng() % std::size(extremes)];
  double x = std::uniform_real_distribution<double>(-4, 4)(rng);
  return t == DType::b1 ? rng() % 2 : x;
}

inline Wide random_wide(const Type& t, std::mt19937& rng, const SymbolValues& symbols = {}) {
  std::vector<std::int64_t> dims;
  for (const Dim& d : t.shape.dims)
    dims.push_back(d.eval([&](std::string_view name) { return symbols.find(name)->second; }));
  Wide w(t.dtype, dims);
  for (double& x : w.reals) x = interesting_number(rng, t.dtype);
  for (std::int64_t& n : w.integers) n = interesting_integer(rng, t.dtype);
  round_to_dtype(w);
  return w;
}

// `exact`: the same bits, any NaN equal to any other; else equal up to rounding.
inline ::testing::AssertionResult same_values(const Wide& a, const Wide& b, bool exact) {
  if (a.dtype != b.dtype || a.dims != b.dims)
    return ::testing::AssertionFailure() << "types differ";
  for (std::size_t i = 0; i < a.integers.size(); ++i)
    if (a.integers[i] != b.integers[i])
      return ::testing::AssertionFailure()
             << "element " << i << ": " << a.integers[i] << " against " << b.integers[i];
  double eps = a.dtype == DType::f16 ? 0x1p-10 : a.dtype == DType::bf16 ? 0x1p-7 : 0x1p-23;
  for (std::size_t i = 0; i < a.reals.size(); ++i) {
    double x = a.reals[i], y = b.reals[i];
    bool same = (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
    if (!exact) same = same || x == y || std::abs(x - y) <= 4 * eps * std::max(std::abs(x), 1e-37);
    if (!same)
      return ::testing::AssertionFailure() << "element " << i << ": " << x << " against " << y;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace hone
