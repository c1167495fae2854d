// Sums, products and contractions. For n terms and unit roundoff u, a sum in any order has an error
// below n u times the sum of the terms' magnitudes; if that overflows the dtype, a partial sum may
// be infinite.
#include <algorithm>

#include "ops/contraction.h"
#include "ops/ops.h"
#include "ref/enclosure_rule.h"

namespace hone {

namespace {

// A new tensor with one number per interval.
template <class F>
Wide map(const Enclosure& e, F f) {
  Wide out(e.dtype(), e.dims());
  for (std::size_t i = 0; i < out.reals.size(); ++i) out.reals[i] = f(at(e, i));
  return out;
}

bool is_finite(Interval x) { return std::isfinite(x.low) && std::isfinite(x.high); }

double magnitude_of(Interval x) { return std::max(std::fabs(x.low), std::fabs(x.high)); }
double finite_magnitude(Interval x) { return is_finite(x) ? magnitude_of(x) : 0; }
double centre(Interval x) { return is_finite(x) ? x.low + (x.high - x.low) / 2 : 0; }
double radius(Interval x) { return is_finite(x) ? (x.high - x.low) / 2 : 0; }

// Small multiples of 2^-4: their sums are too, and their products are multiples of 2^-8.
constexpr double grid = 16;
bool on_grid(const Enclosure& e) {
  for (std::size_t i = 0; i < e.low.reals.size(); ++i) {
    const Interval x = at(e, i);
    if (!x.is_point() || x.low * grid != std::trunc(x.low * grid)) return false;
  }
  return true;
}

struct SumError {
  double terms;     // per sum
  bool on_grid;     // for all operands
  Precision round;  // for the sum
  bool exact;       // nothing rounds

  double operator()(double magnitude) const {
    if (exact || (on_grid && magnitude < 2 / round.eps / (grid * grid))) return 0;
    return (terms + 1) * round.eps * magnitude;
  }
};

// A sum of several zeros may have either sign.
Interval either_zero(Interval x) { return x.low == 0 && x.high == 0 ? Interval{-0.0, 0.0} : x; }

double number(const Enclosing& c, const Dims& dims) {
  double n = 1;
  for (const Dim& d : dims) n *= static_cast<double>(c.size(d));
  return n;
}

double terms_of(const Enclosing& c) {
  if (c.attrs.has("window")) return number(c, c.attrs.dims("window"));
  const auto count = [](const Enclosure& e) { return static_cast<double>(e.low.count()); };
  if (&c.op == &ops::scatter) return count(*c.in[1]) + 1;
  if (&c.op == &ops::cumulative)
    return static_cast<double>(c.in[0]->dims()[static_cast<std::size_t>(c.attrs.integer("axis"))]);
  const double results = static_cast<double>(count_of(c.dims()));
  return results > 0 ? count(*c.in[0]) / results : 0;
}

// A scatter accumulates in its result, so every sum is rounded to the dtype; other sums are kept in
// registers.
Precision precision_within(const Enclosing& c) {
  const DType t = c.types[0].dtype;
  return &c.op == &ops::scatter ? precision_of(t) : precision_of_sums(t);
}

// The operands that are joined: all except indices.
std::vector<std::size_t> joined(const Enclosing& c) {
  if (&c.op == &ops::scatter) return {0, 2};
  return {0};
}

// Evaluates the operation on one number per interval.
template <class F>
Wide eval_map(const Enclosing& c, F f) {
  std::vector<Wide> made(c.in.size());
  std::vector<const Wide*> operands;
  for (const Enclosure* e : c.in) operands.push_back(&e->low);
  for (std::size_t i : joined(c)) {
    made[i] = map(*c.in[i], f);
    operands[i] = &made[i];
  }
  return std::move(c.eval(operands).at(0));
}

}  // namespace

std::vector<Enclosure> enclosing::summed(const Enclosing& c) {
  Enclosure y{eval_map(c, [](Interval x) { return x.low; }),
              eval_map(c, [](Interval x) { return x.is_unknown() ? unknown_low : x.high; })};
  const Wide magnitudes = eval_map(c, finite_magnitude);
  const Wide open = eval_map(c, [](Interval x) { return x.is_unknown() ? 1.0 : 0.0; });
  const Wide hanging = eval_map(c, [](Interval x) { return x.hangs_on_order() ? 1.0 : 0.0; });
  SumError error{terms_of(c), true, precision_within(c), c.exact};
  for (std::size_t i : joined(c)) error.on_grid = error.on_grid && on_grid(*c.in[i]);
  for (std::size_t i = 0; i < y.low.reals.size(); ++i) {
    Interval x = at(y, i);
    const double most = magnitudes.reals[i], e = error(most);
    if (open.reals[i] > 0) {
      put(y, i, hanging.reals[i] > 0 ? any_order_interval : unknown_interval);
      continue;
    }
    x = either_zero({x.low - e, x.high + e});
    if (!c.exact && most > error.round.most) {
      // If all terms are finite and of one sign, no partial sum is an infinity opposed to the rest.
      const double nearly = most * (1 - 1e-9);
      x = !is_finite(x)      ? unknown_interval
          : x.high >= nearly ? Interval{x.low, INFINITY}
          : x.low <= -nearly ? Interval{-INFINITY, x.high}
                             : unknown_interval;
    }
    put(y, i, x);
  }
  return {rounded(c, std::move(y))};
}

std::vector<Enclosure> enclosing::multiplied(const Enclosing& c) {
  const Precision r = precision_within(c);
  const double terms = terms_of(c);
  const Wide least = eval_map(c, [](Interval x) {
    return x.low <= 0 && x.high >= 0 ? 0 : std::min(std::fabs(x.low), std::fabs(x.high));
  });
  const Wide most = eval_map(c, magnitude_of);
  const Wide sign =
      eval_map(c, [](Interval x) { return x.low > 0 || x.high < 0 ? std::copysign(1, x.low) : 0; });
  // The bound of a partial product; infinite if an operand is infinite or unknown.
  const Wide parts = eval_map(
      c, [](Interval x) { return is_finite(x) ? std::max(magnitude_of(x), 1.0) : INFINITY; });
  const Wide known = eval_map(c, [](Interval x) { return x.low == x.low ? 1.0 : 0.0; });
  Enclosure y{Wide(most.dtype, most.dims), Wide(most.dtype, most.dims)};
  for (std::size_t i = 0; i < most.reals.size(); ++i) {
    const double high = most.reals[i], low = least.reals[i], s = sign.reals[i];
    if (!(parts.reals[i] <= (c.exact ? 0x1p60 : r.most))) {
      put(y, i, known.reals[i] > 0 ? any_order_interval : unknown_interval);
      continue;
    }
    Interval x = s > 0   ? Interval{low, high}
                 : s < 0 ? Interval{-high, -low}
                         : Interval{-high, high};
    const double e =
        c.exact || high == 0 ? 0 : (terms + 1) * (r.eps * high + r.tiny * parts.reals[i]);
    put(y, i, either_zero({x.low - e, x.high + e}));
  }
  return {rounded(c, std::move(y))};
}

namespace {

double terms_of_contraction(const Enclosing& c) {
  const Sizes &a = c.in[0]->dims(), &b = c.in[1]->dims();
  double n = 1;
  if (&c.op == &ops::dot) {
    for (int k :
         dot_axes(c.attrs, static_cast<int>(a.size()), static_cast<int>(b.size())).contract_a)
      n *= static_cast<double>(a[static_cast<std::size_t>(k)]);
    return n;
  }
  const ConvAxes axes = conv_axes(c.attrs, static_cast<int>(a.size()));
  n = static_cast<double>(b[static_cast<std::size_t>(axes.in)]);
  for (int k : axes.weight_space) n *= static_cast<double>(b[static_cast<std::size_t>(k)]);
  return n;
}

bool is_padded(const Enclosing& c) {
  for (AttrName name : {AttrName("pads_low"), AttrName("pads_high")})
    for (const Dim& d : c.attrs.dims(name))
      if (c.size(d) != 0) return true;
  return false;
}

bool all_finite(const Enclosure& e) {
  for (std::size_t i = 0; i < e.low.reals.size(); ++i)
    if (!is_finite(at(e, i))) return false;
  return true;
}

bool any_hanging(const Enclosure& e) {
  for (std::size_t i = 0; i < e.low.reals.size(); ++i)
    if (e.hangs_on_order(i)) return true;
  return false;
}

}  // namespace

// Kernels may multiply weights by the padding zeros, which matters for infinite weights.
std::vector<Enclosure> enclosing::contracted(const Enclosing& c) {
  const Enclosure &a = *c.in[0], &b = *c.in[1];
  auto eval = [&](const Wide& x, const Wide& y) { return std::move(c.eval({&x, &y}).at(0)); };
  if (&c.op == &ops::conv && is_padded(c) && !all_finite(b)) return {c.unknown()};
  // Each of these costs as much as the operation itself, and most operands are finite points.
  const bool specials = !all_finite(a) || !all_finite(b), points = a.is_point() && b.is_point();
  const auto sums = [&](bool wanted, auto of_a, auto of_b) {
    return wanted ? eval(map(a, of_a), map(b, of_b)) : Wide();
  };
  const auto or_zero = [](const Wide& w, std::size_t i) {
    return w.reals.empty() ? 0.0 : w.reals[i];
  };
  const auto positive = [](Interval x) { return std::fabs(centre(x)); };
  const auto special = [](Interval x) { return is_finite(x) ? 0.0 : 1.0; };
  const auto one = [](Interval) { return 1.0; };
  const Wide mid = sums(true, centre, centre),
             magnitudes = sums(true, finite_magnitude, finite_magnitude);
  // |a b - mid| <= |mid a| rad b + rad a |mid b| + rad a rad b = |mid a| rad b + rad a max|b|.
  const Wide left = sums(!points, positive, radius),
             right = sums(!points, radius, finite_magnitude);
  const Wide specials_a = sums(specials, special, one), specials_b = sums(specials, one, special);
  const auto hanging = [](Interval x) { return x.hangs_on_order() ? 1.0 : 0.0; };
  const bool hangs = specials && (any_hanging(a) || any_hanging(b));
  const Wide hanging_a = sums(hangs, hanging, one), hanging_b = sums(hangs, one, hanging);
  const bool shows_specials = points && &c.op == &ops::dot;
  const Wide plain = specials && shows_specials ? eval(a.low, b.low) : Wide();
  const SumError error{terms_of_contraction(c), on_grid(a) && on_grid(b),
                       precision_of_sums(c.types[0].dtype), c.exact};
  // The underflow error of products. For dtypes narrower than f64, computing in f64 shows whether
  // all of them are 0.
  const double underflow = c.exact || error.on_grid ? 0 : error.terms * error.round.tiny;
  const bool shows_zero = c.types[0].dtype != DType::f64;
  Enclosure y{mid, mid};
  for (std::size_t i = 0; i < mid.reals.size(); ++i) {
    const double most = magnitudes.reals[i];
    if (!c.exact && !(most <= error.round.most)) {
      put(y, i, unknown_interval);
    } else if (or_zero(specials_a, i) + or_zero(specials_b, i) > 0) {
      const bool is_open = or_zero(hanging_a, i) + or_zero(hanging_b, i) > 0;
      put(y, i,
          is_open          ? any_order_interval
          : shows_specials ? Interval{plain.reals[i], plain.reals[i]}
                           : unknown_interval);
    } else {
      const double width = or_zero(left, i) + or_zero(right, i);
      const double e =
          error(most) + width * 1e-9 + (shows_zero && most == 0 && width == 0 ? 0 : underflow);
      put(y, i, either_zero({mid.reals[i] - width - e, mid.reals[i] + width + e}));
    }
  }
  return {rounded(c, std::move(y))};
}

}  // namespace hone
