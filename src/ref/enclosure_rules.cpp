// Interval rules for elementwise and movement operations, and the table of all rules.
#include <algorithm>
#include <cfloat>
#include <unordered_map>

#include "ops/ops.h"
#include "ref/enclosure_rule.h"

namespace hone {

Precision precision_of(DType t) {
  switch (t) {
    case DType::f16:
      return {0x1p-10, 0x1p-24, 0x1p-14, 65504};
    case DType::bf16:
      return {0x1p-7, 0x1p-133, 0x1p-126, 0x1.fep127};
    case DType::f32:
      return {0x1p-23, 0x1p-149, 0x1p-126, FLT_MAX};
    default:
      return {0x1p-52, 0x1p-1074, DBL_MIN, DBL_MAX};
  }
}

namespace {

// Whether a result is exact in the dtype, rather than only close. For f64 there is no wider type: a
// number with few digits is assumed exact.
bool is_exact(DType t, double x) { return round_real(t == DType::f64 ? DType::f32 : t, x) == x; }

double error_at(const Precision& r, double units, double x) {
  if (!std::isfinite(x)) return 0;
  return units * (r.eps * std::fabs(x) + (std::fabs(x) < r.normal ? r.tiny : 0));
}

}  // namespace

Enclosure rounded(const Enclosing& c, Enclosure e, bool correct) {
  const DType t = c.types[0].dtype;
  if (c.exact || !is_float(t)) return e;
  const Precision r = precision_of(t);
  for (std::size_t i = 0; i < e.low.reals.size(); ++i) {
    const auto [low, high] = at(e, i);
    if (low != low || (low == high && (low == 0 || (correct && is_exact(t, low))))) continue;
    Interval x = {low - error_at(r, c.units, low), high + error_at(r, c.units, high)};
    // Rounding keeps the sign, including that of zero, and turns overflow into infinity unless the
    // value is kept wider.
    if (low >= 0 && x.low < 0) x.low = std::copysign(0.0, low);
    if (high <= 0 && x.high > 0) x.high = std::copysign(0.0, high);
    // Values in between may be rounded to the nearest number outside.
    x = {std::min(x.low, round_real(t, x.low)), std::max(x.high, round_real(t, x.high))};
    if (x.high > r.most) x.high = INFINITY;
    if (x.low < -r.most) x.low = -INFINITY;
    put(e, i, x);
  }
  return e;
}

namespace {

Enclosure empty_like(const Enclosing& c) {
  return {Wide(c.types[0].dtype, c.dims()), Wide(c.types[0].dtype, c.dims())};
}

bool any_unknown(const Enclosing& c, std::size_t i) {
  for (const Enclosure* e : c.in)
    if (e->low.is_real() && at(*e, i).is_unknown()) return true;
  return false;
}

// For an element with an unknown operand: a dependence on order is passed on.
Interval unknown_from(const Enclosing& c, std::size_t i) {
  for (const Enclosure* e : c.in)
    if (e->low.is_real() && e->hangs_on_order(i) && at(*e, i).is_unknown())
      return any_order_interval;
  return unknown_interval;
}

// For one operand, by a function on intervals.
template <class F>
std::vector<Enclosure> each(const Enclosing& c, F f, bool correct = true) {
  Enclosure y = empty_like(c);
  for (std::size_t i = 0; i < y.low.reals.size(); ++i) {
    const Interval x = at(*c.in[0], i);
    put(y, i, x.is_unknown() || x.is_nan() ? x : f(x));
  }
  return {rounded(c, std::move(y), correct)};
}

// For monotone ops: the bounds are those of the operands. Kernels may return either zero.
std::vector<Enclosure> ends(const Enclosing& c, bool correct) {
  std::vector<const Wide*> low, high;
  for (const Enclosure* e : c.in) low.push_back(&e->low), high.push_back(&e->high);
  std::vector<Wide> least = c.eval(low), most = c.eval(high);
  std::vector<Enclosure> out;
  for (std::size_t i = 0; i < least.size(); ++i)
    out.push_back({std::move(least[i]), std::move(most[i])});
  for (std::size_t i = 0; i < out[0].low.reals.size() && c.op.kind == OpKind::elementwise; ++i)
    if (any_unknown(c, i))
      put(out[0], i, unknown_from(c, i));
    else if (std::isnan(out[0].low.reals[i]) != std::isnan(out[0].high.reals[i]))
      put(out[0], i, any_order_interval);  // one end is outside the domain, as for a root
  out[0] = rounded(c, std::move(out[0]), correct);
  return out;
}

// Ops with an error above one unit are not correctly rounded, where the exact result is a number.
std::vector<Enclosure> monotone(const Enclosing& c) { return ends(c, c.op.ulps <= 1); }

std::vector<Enclosure> extreme(const Enclosing& c) {
  std::vector<Enclosure> out = ends(c, true);
  for (std::size_t i = 0; i < out[0].low.reals.size(); ++i)
    if (out[0].low.reals[i] == 0 && out[0].high.reals[i] == 0) put(out[0], i, {-0.0, 0.0});
  return out;
}

std::vector<Enclosure> negated(const Enclosing& c) {
  return each(c, [](Interval x) { return Interval{-x.high, -x.low}; });
}

std::vector<Enclosure> magnitude(const Enclosing& c) {
  return each(c, [](Interval x) {
    if (x.low >= 0 || x.high <= 0)
      return Interval{std::min(std::fabs(x.low), std::fabs(x.high)),
                      std::max(std::fabs(x.low), std::fabs(x.high))};
    return Interval{0, std::max(-x.low, x.high)};
  });
}

// cos(x + shift). Maxima are at even multiples of pi, minima at odd ones.
Interval wave(Interval x, double shift, double (*f)(double)) {
  if (!std::isfinite(x.low) || !std::isfinite(x.high))
    return x.is_point() ? Interval{unknown_low, unknown_low} : any_order_interval;
  constexpr double pi = 3.14159265358979323846;
  const double low = lesser(f(x.low), f(x.high)), high = greater(f(x.low), f(x.high));
  if (x.is_point()) return {low, high};
  // Slightly wider, to cover the rounding error in the multiples themselves.
  const double slack = 1e-15 * (std::fabs(x.low) + std::fabs(x.high)) + 1e-15;
  const double first = std::ceil((x.low + shift - slack) / pi),
               last = std::floor((x.high + shift + slack) / pi);
  if (last - first >= 1) return {-1, 1};
  if (last < first) return {low, high};
  return std::fmod(first, 2) == 0 ? Interval{low, 1} : Interval{-1, high};
}

std::vector<Enclosure> cosine(const Enclosing& c) {
  return each(c, [](Interval x) { return wave(x, 0, std::cos); }, false);
}
std::vector<Enclosure> sine(const Enclosing& c) {
  return each(c, [](Interval x) { return wave(x, -1.57079632679489661923, std::sin); }, false);
}

Interval nothing_known(Interval, Interval) { return unknown_interval; }

// Minimum and maximum of a function of two operands at the corners of their box, where `holds` is
// true; else `otherwise`.
std::vector<Enclosure> corners(const Enclosing& c, bool (*holds)(Interval, Interval), bool correct,
                               Interval (*otherwise)(Interval, Interval) = nothing_known) {
  const Enclosure &a = *c.in[0], &b = *c.in[1];
  // A known operand has one value, not two ends.
  const auto sides = [](const Enclosure& e) {
    return e.is_point() ? std::vector{&e.low} : std::vector{&e.low, &e.high};
  };
  std::vector<Wide> w;
  for (const Wide* x : sides(a))
    for (const Wide* y : sides(b)) w.push_back(std::move(c.eval({x, y}).at(0)));
  const int all = static_cast<int>(w.size());
  Enclosure out = empty_like(c);
  for (std::size_t i = 0; i < out.low.reals.size(); ++i) {
    Interval x = {INFINITY, -INFINITY};
    int nans = 0;
    for (const Wide& v : w) {
      nans += std::isnan(v.reals[i]);
      x = joined(x, {v.reals[i], v.reals[i]});
    }
    if (any_unknown(c, i))
      x = unknown_from(c, i);
    else if (nans > 0 && nans < all)
      x = any_order_interval;  // as for an infinity that may be divided by another one
    else if (nans == all)
      x = {unknown_low, unknown_low};
    else if (!holds(at(a, i), at(b, i)))
      x = otherwise(at(a, i), at(b, i));
    put(out, i, x);
  }
  return {rounded(c, std::move(out), correct)};
}

// Whether a - b may be inf - inf, and may also be a number.
bool may_cancel_infinities(Interval a, Interval b) {
  return ((a.high == INFINITY && b.high == INFINITY) ||
          (a.low == -INFINITY && b.low == -INFINITY)) &&
         !(a.is_point() && b.is_point());
}

std::vector<Enclosure> difference(const Enclosing& c) {
  Enclosure y{std::move(c.eval({&c.in[0]->low, &c.in[1]->high}).at(0)),
              std::move(c.eval({&c.in[0]->high, &c.in[1]->low}).at(0))};
  for (std::size_t i = 0; i < y.low.reals.size(); ++i) {
    if (any_unknown(c, i))
      put(y, i, unknown_from(c, i));
    else if (may_cancel_infinities(at(*c.in[0], i), at(*c.in[1], i)))
      put(y, i, any_order_interval);
  }
  return {rounded(c, std::move(y))};
}

std::vector<Enclosure> total(const Enclosing& c) {
  std::vector<Enclosure> y = monotone(c);
  for (std::size_t i = 0; i < y[0].low.reals.size(); ++i) {
    const Interval b = at(*c.in[1], i);
    if (!any_unknown(c, i) && may_cancel_infinities(at(*c.in[0], i), {-b.high, -b.low}))
      put(y[0], i, any_order_interval);
  }
  return y;
}

bool has_zero(Interval x) { return !x.is_point() && x.low <= 0 && x.high >= 0; }
bool is_infinite(Interval x) { return x.low == x.high && std::isinf(x.low); }
bool is_nearly_zero(Interval x) { return x.low < x.high && has_zero(x); }

std::vector<Enclosure> product(const Enclosing& c) {
  if (c.in[0] == c.in[1])
    return each(c, [](Interval x) {
      const double p = x.low * x.low, q = x.high * x.high;
      return Interval{x.low < 0 && x.high > 0 ? 0 : std::min(p, q), std::max(p, q)};
    });
  std::vector<Enclosure> y = corners(c, [](Interval, Interval) { return true; }, true);
  for (std::size_t i = 0; i < y[0].low.reals.size(); ++i) {
    const Interval a = at(*c.in[0], i), b = at(*c.in[1], i);
    // Rounding decides whether the other factor is zero and the product NaN.
    if ((is_infinite(a) && is_nearly_zero(b)) || (is_infinite(b) && is_nearly_zero(a)))
      put(y[0], i, any_order_interval);
  }
  return y;
}

// For d with a zero, or x and d with a zero: the quotients include an infinity of either sign or,
// if x has a zero as well, NaN.
Interval any_quotient(Interval x, Interval d) {
  const bool finite = std::isfinite(x.low) && std::isfinite(x.high) && std::isfinite(d.low) &&
                      std::isfinite(d.high);
  return finite ? any_order_interval : unknown_interval;
}

// Kernels may multiply by the reciprocal of a constant, which is exact for powers of two.
std::vector<Enclosure> quotient(const Enclosing& c) {
  const Enclosure& y = *c.in[1];
  bool correct = true;
  for (std::size_t i = 0; i < y.low.reals.size() && correct; ++i) {
    int exponent = 0;
    correct = at(y, i).is_point() && std::fabs(std::frexp(at(y, i).low, &exponent)) == 0.5;
  }
  return corners(c, [](Interval, Interval d) { return !has_zero(d); }, correct, any_quotient);
}

// The remainder by y without zero: it has the sign of x and is no larger than either.
Interval any_remainder(Interval x, Interval y) {
  if (has_zero(y)) return any_order_interval;
  const double most = std::max(std::fabs(y.low), std::fabs(y.high));
  return {std::max(std::min(x.low, 0.0), -most), std::min(std::max(x.high, 0.0), most)};
}

// The number of times y fits into x; NaN where f64 cannot represent it exactly.
double times_of(double x, double y) {
  constexpr double most = 0x1p52;
  const double times = std::round((x - std::fmod(x, y)) / y);
  return std::fabs(times) < most ? times : unknown_low;
}

// The remainder is monotone within one period.
std::vector<Enclosure> remainder(const Enclosing& c) {
  return corners(
      c,
      [](Interval x, Interval y) {
        if (x.is_point() && y.is_point()) return true;
        const double q = times_of(x.low, y.low);
        return !has_zero(y) && q == times_of(x.high, y.high) && q == times_of(x.low, y.high) &&
               q == times_of(x.high, y.low);
      },
      true, any_remainder);
}

std::vector<Enclosure> power(const Enclosing& c) {
  std::vector<Enclosure> out = corners(
      c, [](Interval x, Interval y) { return x.low > 0 || (x.is_point() && y.is_point()); }, false);
  // A negative base gives NaN, or a number if the exponent is an integer. 1 to any exponent is 1,
  // and any number to the exponent 0 is 1, even if the other operand is NaN.
  const auto holds = [](Interval x, double number) {
    return x.low < x.high && x.low <= number && x.high >= number;
  };
  for (std::size_t i = 0; i < out[0].low.reals.size(); ++i) {
    const Interval x = at(*c.in[0], i), y = at(*c.in[1], i);
    const bool may_be_whole = x.low < 0 && y.low < y.high && std::floor(y.high) >= y.low;
    if (may_be_whole || (y.is_nan() && holds(x, 1)) || (x.is_nan() && holds(y, 0)))
      put(out[0], i, any_order_interval);
  }
  return out;
}

// ---- decisions

// -1: a is less, 1: it is not less, 0: undecided. `or_equal`: less or equal.
int compare(const Enclosure& a, const Enclosure& b, std::size_t i, bool or_equal) {
  if (!a.low.is_real()) {
    const DType t = a.dtype();
    auto before = [&](std::int64_t p, std::int64_t q) {
      return or_equal ? !integer_less(t, q, p) : integer_less(t, p, q);
    };
    if (before(a.high.integers[i], b.low.integers[i])) return -1;
    return before(a.low.integers[i], b.high.integers[i]) ? 0 : 1;
  }
  const Interval x = at(a, i), y = at(b, i);
  if (x.is_nan() || y.is_nan()) return 1;
  if (x.is_unknown() || y.is_unknown()) return 0;
  auto before = [&](double p, double q) { return or_equal ? p <= q : p < q; };
  if (before(x.high, y.low)) return -1;
  return before(x.low, y.high) ? 0 : 1;
}

template <class F>
std::vector<Enclosure> decided(const Enclosing& c, F f) {
  Enclosure y = empty_like(c);
  for (std::size_t i = 0; i < y.low.integers.size(); ++i) {
    const int d = f(i);
    y.low.integers[i] = d < 0;
    y.high.integers[i] = d <= 0;
  }
  return {std::move(y)};
}

std::vector<Enclosure> less(const Enclosing& c) {
  return decided(c, [&](std::size_t i) { return compare(*c.in[0], *c.in[1], i, false); });
}
std::vector<Enclosure> less_or_equal(const Enclosing& c) {
  return decided(c, [&](std::size_t i) { return compare(*c.in[0], *c.in[1], i, true); });
}

// Equal if each is at most the other.
int equality(const Enclosing& c, std::size_t i) {
  const int p = compare(*c.in[0], *c.in[1], i, true), q = compare(*c.in[1], *c.in[0], i, true);
  return p == 1 || q == 1 ? 1 : std::max(p, q);
}
std::vector<Enclosure> equal(const Enclosing& c) {
  return decided(c, [&](std::size_t i) { return equality(c, i); });
}
std::vector<Enclosure> unequal(const Enclosing& c) {
  return decided(c, [&](std::size_t i) { return -equality(c, i); });
}

std::vector<Enclosure> chosen(const Enclosing& c) {
  const Enclosure &go = *c.in[0], &x = *c.in[1], &y = *c.in[2];
  const DType t = x.dtype();
  Enclosure out = x;
  for (std::size_t i = 0; i < go.low.integers.size(); ++i) {
    const bool maybe = go.low.integers[i] != go.high.integers[i];
    if (!maybe && go.low.integers[i]) continue;
    if (x.low.is_real()) {
      const Interval a = at(x, i), b = at(y, i);
      const bool open = a.low != a.low || b.low != b.low;
      if (!maybe || (a.is_nan() && b.is_nan()))
        put(out, i, b);
      else if (a.is_nan() || b.is_nan())
        put(out, i, any_order_interval);  // rounding decides whether the result is NaN
      else
        put(out, i, open ? unknown_from(c, i) : joined(a, b));
      continue;
    }
    const std::int64_t low = y.low.integers[i], high = y.high.integers[i];
    if (!maybe || integer_less(t, low, out.low.integers[i])) out.low.integers[i] = low;
    if (!maybe || integer_less(t, out.high.integers[i], high)) out.high.integers[i] = high;
  }
  return {std::move(out)};
}

bool may_be_zero(const Enclosure& x, std::size_t i) {
  if (!x.low.is_real())
    return x.low.integers[i] == 0 || (x.low.integers[i] < 0 && x.high.integers[i] >= 0);
  const Interval v = at(x, i);
  return v.is_unknown() || (v.low <= 0 && v.high >= 0);
}

constexpr double most_held_integer = 0x1p53;

bool is_zero(const Enclosure& x, std::size_t i) {
  return x.low.is_real() ? x.low.reals[i] == 0 && x.high.reals[i] == 0
                         : x.low.integers[i] == 0 && x.high.integers[i] == 0;
}

// The interval of x together with its rounded values; integers beyond 2^53, which f64 cannot
// represent, are unchanged.
void round_once(const Enclosure& x, Enclosure& y) {
  const DType to = y.dtype();
  for (std::size_t i = 0; i < y.low.reals.size(); ++i) {
    const Interval given = x.low.is_real()
                               ? at(x, i)
                               : Interval{integer_to_real(x.dtype(), x.low.integers[i]),
                                          integer_to_real(x.dtype(), x.high.integers[i])};
    const bool is_held = x.low.is_real() || (std::fabs(given.low) < most_held_integer &&
                                             std::fabs(given.high) < most_held_integer);
    if (!is_held || std::isnan(given.low) || std::isnan(given.high)) continue;
    put(y, i,
        {std::min(given.low, round_real(to, given.low)),
         std::max(given.high, round_real(to, given.high))});
  }
}

// A cast rounds in every evaluation, and rounding is monotone. But a kernel may omit the cast at
// the end of a composite operation. So a number that rounds to zero remains a bound of its
// interval: multiplied by infinity it is not NaN.
std::vector<Enclosure> cast(const Enclosing& c) {
  const Enclosure& x = *c.in[0];
  const DType from = x.dtype(), to = c.types[0].dtype;
  if (from == to) return {x};  // kernels leave such a cast out
  if (to == DType::b1)
    return decided(c, [&](std::size_t i) {
      return is_zero(x, i) ? 1 : may_be_zero(x, i) ? 0 : -1;
    });
  Enclosure y = ends(c, true)[0];
  if (is_float(to) && !is_small(to)) round_once(x, y);
  if (is_float(from) && is_float(to)) {
    // Rounding to small floats is not monotone: overflow may give NaN, and some have no sign.
    for (std::size_t i = 0; is_small(to) && i < y.low.reals.size(); ++i)
      if (!at(x, i).is_point()) put(y, i, unknown_interval);
    for (std::size_t i = 0; i < y.low.reals.size(); ++i) {
      if (y.low.reals[i] == 0) y.low.reals[i] = std::min(y.low.reals[i], x.low.reals[i]);
      if (y.high.reals[i] == 0) y.high.reals[i] = std::max(y.high.reals[i], x.high.reals[i]);
    }
    return {std::move(y)};
  }
  for (std::size_t i = 0; i < y.low.integers.size(); ++i) {
    bool known = true;
    if (is_float(from)) {
      known = !at(x, i).is_unknown();
    } else if (x.low.integers[i] != x.high.integers[i]) {
      const double low = integer_to_real(from, x.low.integers[i]),
                   high = integer_to_real(from, x.high.integers[i]);
      known = low == integer_to_real(to, y.low.integers[i]) &&
              high == integer_to_real(to, y.high.integers[i]) && high < 0x1p53;
    }
    if (!known) y.low.integers[i] = lowest_of(to), y.high.integers[i] = highest_of(to);
  }
  return {std::move(y)};
}

// NaN has many bit patterns, and any of them may occur.
std::vector<Enclosure> reinterpreted(const Enclosing& c) {
  const Enclosure& x = *c.in[0];
  const bool has_nan = std::ranges::any_of(x.low.reals, [](double v) { return v != v; });
  if (x.is_point() && !has_nan) return ends(c, true);
  Enclosure y = c.unknown();
  for (std::size_t i = 0; has_nan && i < y.low.reals.size(); ++i) put(y, i, any_order_interval);
  return {std::move(y)};
}

// If an index depends on rounding, the result may be any element of the operand.
std::vector<Enclosure> indexed(const Enclosing& c) {
  const std::size_t index = &c.op == &ops::dynamic_update ? 2 : 1;
  if (c.in[index]->is_point()) return ends(c, true);
  Enclosure out = c.unknown();
  if (!out.low.is_real() || out.low.count() == 0) return {std::move(out)};
  Interval all = {INFINITY, -INFINITY};
  for (const Enclosure* e : c.in)
    for (std::size_t i = 0; i < e->low.reals.size(); ++i) {
      const Interval x = at(*e, i);
      if (x.low != x.low) return {std::move(out)};
      all = joined(all, x);
    }
  for (std::size_t i = 0; i < out.low.reals.size(); ++i) put(out, i, all);
  return {std::move(out)};
}

std::vector<Enclosure> scattered(const Enclosing& c) {
  const Join how = join_of(c.attrs.get<std::string>("kind"));
  if (!c.in[1]->is_point())
    return how == Join::sum || how == Join::product ? std::vector{c.unknown()} : indexed(c);
  if (how == Join::sum) return enclosing::summed(c);
  return how == Join::product ? enclosing::multiplied(c) : extreme(c);
}

std::vector<Enclosure> accumulated(const Enclosing& c) {
  const Join how = join_of(c.attrs.get<std::string>("kind"));
  if (how == Join::sum) return enclosing::summed(c);
  return how == Join::product ? enclosing::multiplied(c) : extreme(c);
}

std::vector<Enclosure> inverted(const Enclosing& c) {
  if (c.types[0].dtype != DType::b1)
    return {{c.eval({&c.in[0]->high}).at(0), c.eval({&c.in[0]->low}).at(0)}};
  return decided(c, [&](std::size_t i) {
    return is_zero(*c.in[0], i) ? -1 : may_be_zero(*c.in[0], i) ? 0 : 1;
  });
}

// Bools: monotone. The bits of integers say too little about an interval.
std::vector<Enclosure> joined_bits(const Enclosing& c) {
  return c.types[0].dtype == DType::b1 ? ends(c, true) : enclosing::where_decided(c);
}

// Rules for operations that are not simply monotone.
constexpr EnclosureRow rows[] = {
    {&ops::add, total, Whole::as_real},
    {&ops::sub, difference, Whole::as_real},
    {&ops::mul, product, Whole::as_real},
    {&ops::div, quotient, Whole::refused},
    {&ops::rem, remainder, Whole::refused},
    {&ops::pow, power, Whole::refused},
    {&ops::maximum, extreme, Whole::plain, true},
    {&ops::minimum, extreme, Whole::plain, true},
    {&ops::neg, negated, Whole::as_real},
    {&ops::abs, magnitude, Whole::as_real},
    {&ops::sin, sine},
    {&ops::cos, cosine},
    {&ops::bit_not, inverted},
    {&ops::bit_and, joined_bits},
    {&ops::bit_or, joined_bits},
    {&ops::eq, equal},
    {&ops::ne, unequal},
    {&ops::lt, less},
    {&ops::le, less_or_equal},
    {&ops::select, chosen},
    {&ops::cast, cast},
    {&ops::bitcast, reinterpreted, Whole::plain, false, true},
    {&ops::gather, indexed},
    {&ops::dynamic_slice, indexed},
    {&ops::dynamic_update, indexed},
    {&ops::scatter, scattered, Whole::as_real},
    {&ops::reduce_sum, enclosing::summed, Whole::as_real},
    {&ops::reduce_prod, enclosing::multiplied, Whole::as_real},
    {&ops::reduce_max, extreme, Whole::plain, true},
    {&ops::reduce_min, extreme, Whole::plain, true},
    {&ops::argmax, enclosing::position},
    {&ops::argmin, enclosing::position},
    {&ops::reduce_window, accumulated, Whole::as_real},
    {&ops::cumulative, accumulated, Whole::as_real},
    {&ops::sort, enclosing::sorted},
    {&ops::dot, enclosing::contracted, Whole::as_real},
    {&ops::conv, enclosing::contracted, Whole::as_real},
};

}  // namespace

const EnclosureRow* enclosure_row(const Op& op) {
  static const auto by_op = [] {
    std::unordered_map<const Op*, const EnclosureRow*> map;
    for (const EnclosureRow& r : rows) map.emplace(r.op, &r);
    return map;
  }();
  static constexpr EnclosureRow rising = {nullptr, monotone};
  if (auto it = by_op.find(&op); it != by_op.end()) return it->second;
  return op.rising ? &rising : nullptr;
}

}  // namespace hone
