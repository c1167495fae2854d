#include "ref/compare.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <iomanip>
#include <limits>
#include <ostream>

#include "ref/evaluate.h"

namespace hone {

namespace {

bool same_form(Comparison& c, const Wide& got, const Wide& expected) {
  if (got.dtype == expected.dtype && got.dims == expected.dims) return true;
  c.ok = false;
  c.problem = cat("got ", got.dtype, Shape(dims_of(got.dims)), ", expected ", expected.dtype,
                  Shape(dims_of(expected.dims)));
  return false;
}

void note_error(Comparison& c, double error, double limit) {
  if (error > c.max_abs_error) c.max_abs_error = error;
  c.limit = std::max(c.limit, limit);
}

// The largest |f(i)| whose bits are below `end`. Magnitudes are ordered like their bits, with
// infinities and NaN above all numbers; the compiler vectorizes a maximum of integers, but not of
// doubles.
constexpr std::int64_t all_bits = std::numeric_limits<std::int64_t>::max(),
                       bits_of_infinity = std::int64_t{0x7ff} << 52;

template <class F>
double largest_magnitude(std::size_t n, F f, std::int64_t end = all_bits) {
  std::int64_t most = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t bits = std::bit_cast<std::int64_t>(f(i)) & all_bits;
    most = std::max(most, bits < end ? bits : 0);
  }
  return std::bit_cast<double>(most);
}

double largest(const std::vector<double>& values) {
  return largest_magnitude(
      values.size(), [&](std::size_t i) { return values[i]; }, bits_of_infinity);
}

Comparison accept_integers(Comparison c, const Wide& got, const Wide& strict, const Wide& wide) {
  for (std::size_t i = 0; i < got.integers.size(); ++i) {
    if (strict.integers[i] != wide.integers[i]) {
      ++c.undecided;
      continue;
    }
    if (got.integers[i] != wide.integers[i])
      c.differs(i, static_cast<double>(got.integers[i]), static_cast<double>(wide.integers[i]));
  }
  return c;
}

}  // namespace

void Comparison::differs(std::size_t i, double here, double wanted) {
  ok = false;
  if (first_bad >= 0) return;
  first_bad = static_cast<std::int64_t>(i);
  got = here;
  expected = wanted;
}

double epsilon_of(DType t) {
  switch (t) {
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    case DType::f32:
      return 0x1p-23;
    case DType::f64:
      return 0x1p-52;
    default:
      return 0;  // small floats too: they are only cast to, so as exact as integers
  }
}

Comparison accept(const Wide& got, const Wide& strict, const Wide& wide) {
  Comparison c;
  if (!same_form(c, got, wide) || !same_form(c, strict, wide)) return c;
  if (!got.is_real()) return accept_integers(std::move(c), got, strict, wide);
  const double *at = got.reals.data(), *rounded = strict.reals.data(), *exact = wide.reals.data();
  const std::size_t n = wide.reals.size();
  const double most = largest(wide.reals),
               spread = largest_magnitude(
                   n, [=](std::size_t i) { return rounded[i] - exact[i]; }, bits_of_infinity);
  double limit = 4 * spread + 16 * epsilon_of(got.dtype) * most;
  note_error(c, 0, limit);
  // Rounding leaves numbers below this finite.
  const double surely_finite = std::fabs(round_real(wide.dtype, most)) <= DBL_MAX ? most : 1;
  // Usually every element is finite and within the limit; three maxima show that without branches.
  // A NaN or infinity among the results makes the error exceed the limit.
  const double error = largest_magnitude(n, [=](std::size_t i) { return at[i] - exact[i]; });
  if (error <= limit && limit <= DBL_MAX &&
      largest_magnitude(n, [=](std::size_t i) { return rounded[i]; }) <= DBL_MAX &&
      largest_magnitude(n, [=](std::size_t i) { return exact[i]; }) <= surely_finite) {
    c.max_abs_error = error;
    c.max_rel_error = most > 0 ? error / most : 0;
    return c;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const double g = got.reals[i], s = strict.reals[i];
    const double w = std::fabs(wide.reals[i]) <= surely_finite
                         ? wide.reals[i]
                         : round_real(wide.dtype, wide.reals[i]);
    if (!std::isfinite(s) || !std::isfinite(w)) {
      if (!same_special(s, w))
        ++c.undecided;
      else if (!same_special(g, w))
        c.differs(i, g, w);
      continue;
    }
    double error = std::fabs(g - wide.reals[i]);
    if (!(error <= limit)) c.differs(i, g, wide.reals[i]);
    if (std::isfinite(g)) note_error(c, error, limit);
  }
  c.max_rel_error = most > 0 ? c.max_abs_error / most : 0;
  return c;
}

bool same_special(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

Comparison accept(const Array& got, const Wide& strict, const Wide& wide) {
  return accept(widen(got), strict, wide);
}

Comparison within(const Array& got_array, const Array& expected_array, double absolute,
                  double relative) {
  Comparison c;
  Wide got = widen(got_array), expected = widen(expected_array);
  if (!same_form(c, got, expected)) return c;
  if (!got.is_real()) return accept_integers(std::move(c), got, expected, expected);
  for (std::size_t i = 0; i < got.reals.size(); ++i) {
    double g = got.reals[i], e = expected.reals[i];
    if (!std::isfinite(g) || !std::isfinite(e)) {
      if (!same_special(g, e)) c.differs(i, g, e);
      continue;
    }
    double error = std::fabs(g - e), limit = absolute + relative * std::fabs(e);
    if (!(error <= limit)) c.differs(i, g, e);
    note_error(c, error, limit);
  }
  double most = largest(expected.reals);
  c.max_rel_error = most > 0 ? c.max_abs_error / most : 0;
  return c;
}

std::ostream& operator<<(std::ostream& out, const Comparison& c) {
  if (!c.problem.empty()) return out << c.problem;
  out << (c.ok ? "equal" : "different") << ": largest error " << c.max_abs_error << " (relative "
      << c.max_rel_error << "), allowed " << c.limit;
  if (c.first_bad >= 0)
    out << "; first at element " << c.first_bad << std::setprecision(9) << ": got " << c.got
        << ", expected " << c.expected << std::setprecision(6);
  if (c.undecided) out << "; " << c.undecided << " elements undecided";
  return out;
}

}  // namespace hone
