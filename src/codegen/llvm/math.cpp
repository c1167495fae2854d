// Exponentials, logarithms and functions derived from them. Coefficients: tools/minimax.
#include "codegen/llvm/math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "codegen/llvm/math_detail.h"
#include "ops/ops.h"

namespace hone::llvm {

namespace detail {

Value fma(Value a, Value b, double c) { return llvm::fma(a, b, real_like(a, c)); }
Value fma(Value a, double b, Value c) { return llvm::fma(a, real_like(a, b), c); }
Value fma(Value a, double b, double c) { return fma(a, real_like(a, b), c); }

Value polynomial(Value x, std::span<const double> c) {
  Value sum = real_like(x, c.back());
  for (std::size_t i = c.size() - 1; i-- > 0;) sum = fma(sum, x, c[i]);
  return sum;
}

// In this operand order both are the machine's min and max, which return the second when one is
// NaN.
Value at_most(Value x, double bound) {
  Value b = real_like(x, bound);
  return select(less(b, x), b, x);
}
Value at_least(Value x, double bound) {
  Value b = real_like(x, bound);
  return select(greater(b, x), b, x);
}

Value for_f32(const char* name, Value x, Value (*f)(Value)) {
  if (x.dtype() == DType::f32) return f(x);
  HONE_ASSERT(x.dtype() == DType::f64, name, " of ", x.dtype());
  return x.module->call_helper(name, std::span(&x, 1));
}

}  // namespace detail

namespace {

using detail::at_least;
using detail::at_most;
using detail::fma;
using detail::for_f32;
using detail::has_avx512;
using detail::ln2_high;
using detail::ln2_low;
using detail::log2_of_e;
using detail::polynomial;
using detail::rounder;
using detail::scale;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// ---- exponentials

// x = n ln 2 + r, |r| <= ln 2 / 2.
struct Reduced {
  Value r, n;     // n integral
  Value integer;  // n as i32
};

Reduced reduce_by_ln2(Value x) {
  Value t = fma(x, log2_of_e, rounder);
  Value n = t - rounder;
  Value r = fma(n, -ln2_low, fma(n, -ln2_high, x));
  Value integer = bitcast(t, DType::i32) - bitcast(real_like(t, rounder), DType::i32);
  return {r, n, integer};
}

// exp(r) - 1
Value small_expm1(Value r) {
  constexpr double p[] = {0.49999997, 0.166665405, 0.0416674502, 0.00836701319, 0.00138702185};
  return llvm::fma(r * r, polynomial(r, p), r);
}

// exp(r)
Value small_exp(Value r) { return fma(r, polynomial(r, detail::exp_rest), real_like(r, 1)); }

Value exp_f32(Value x) {
  Reduced d = reduce_by_ln2(at_most(at_least(x, -104.0), 89.0));
  return scale(small_exp(d.r), d.n, d.integer);
}

// Without the second reduction step and without bounds: only the result can overflow.
Value exp_of_rounded_f32(Value x) {
  if (!has_avx512(x)) return exp_f32(x);
  constexpr double p[] = {1.0,           0.693147063,   0.240229085,   0.0554861836,
                          0.00967377517, 0.00124822895, 0.000215659718};
  Value y = x * log2_of_e;
  return detail::scale_by_floor(polynomial(detail::above_floor(y), p), y);
}

// exp(x) / 2 for x >= 0; finite whenever the true value is.
Value half_exp(Value x) {
  Reduced d = reduce_by_ln2(at_most(x, 90.0));
  return scale(small_exp(d.r), d.n - 1.0, d.integer - 1);
}

// 2 (2^(n-1) (exp(r) - 1) + 2^(n-1) - 1/2): the halves keep n = 128 finite.
Value expm1_f32(Value x) {
  Reduced d = reduce_by_ln2(at_most(at_least(x, -18.0), 89.0));
  Value half_power = detail::power_of_two(d.integer - 1);
  Value y = llvm::fma(small_expm1(d.r), half_power, half_power - 0.5) * 2.0;
  return select(less(abs(x), 0x1p-25), x, y);
}

// ---- logarithms

// log(1 + f) = f - f^2 / 2 + f^3 (p[0] + p[1] f + ...) for sqrt(1/2) <= 1 + f <= sqrt(2)
constexpr double log1p_rest[] = {0.333333313, -0.250008196, 0.200012416, -0.166234091,
                                 0.14201583,  -0.131596163, 0.12762183,  -0.0763636306};

// log(x) for positive finite x: x = m 2^e, m in [sqrt(1/2), sqrt(2)).
Value log_positive(Value x) {
  Value is_subnormal = less(x, 0x1p-126);
  Value bits = bitcast(select(is_subnormal, x * 0x1p23, x), DType::i32);
  Value exponent = (bits - 0x3f3504f3) >> 23;
  Value f = bitcast(bits - (exponent << 23), DType::f32) - 1.0;
  Value e = cast(exponent, DType::f32) - select(is_subnormal, real_like(x, 23), real_like(x, 0));
  Value square = f * f;
  Value rest = square * f * polynomial(f, log1p_rest);
  rest = fma(square, -0.5, fma(e, ln2_low, rest));
  return fma(e, ln2_high, f + rest);
}

Value log_f32(Value x) {
  Value y = select(less(x, infinity), log_positive(x), x);
  Value edge = select(equal(x, 0.0), real_like(x, -infinity), real_like(x, nan));
  return select(less_equal(x, 0.0), edge, y);
}

// log(u) + c / u where u = 1 + x rounded and c is the rounding error (Kahan).
Value log1p_f32(Value x) {
  Value u = x + 1.0;
  Value correction = (x - (u - 1.0)) / u;
  Value is_regular = greater(u, 0.0) & less(u, infinity);
  Value y = log_f32(u) + select(is_regular, correction, real_like(x, 0));
  return select(less(abs(x), 0x1p-25), x, y);
}

// ---- pow, in f64, whose 53 bits are enough for y log2(x)

constexpr double rounder_f64 = 6755399441055744.0;  // 1.5 * 2^52

// log2 of positive x, relative error 2^-45: 2 atanh(s) / ln 2 with s = (m - 1) / (m + 1).
Value log2_f64(Value x) {
  constexpr double p[] = {2.8853900817778504,  0.96179669411302848, 0.57707794242710253,
                          0.41220924755810806, 0.31990585617459216, 0.2828982789338696};
  Value bits = bitcast(x, DType::i64);
  Value exponent = cast(cast((bits - 0x3fe6a09e667f3bcd) >> 52, DType::i32), DType::i64);
  Value m = bitcast(bits - (exponent << 52), DType::f64);
  Value s = (m - 1.0) / (m + 1.0);
  return llvm::fma(s, polynomial(s * s, p), cast(cast(exponent, DType::i32), DType::f64));
}

// 2^x for |x| < 1000, relative error 2^-34.
Value exp2_f64(Value x) {
  constexpr double p[] = {0.69314718070453729,   0.24022651066609163,   0.055504103659522526,
                          0.0096180381265580338, 0.0013333935091816721, 0.00015466757785988295,
                          1.5196147869082199e-5};
  Value t = x + rounder_f64;
  Value r = x - (t - rounder_f64);
  Value y = fma(r, polynomial(r, p), real_like(r, 1));
  return bitcast(bitcast(y, DType::i64) + (bitcast(t, DType::i64) << 52), DType::f64);
}

Value pow_magnitude(Value base, Value y) {
  Value b = cast(base, DType::f64);
  Value logarithm =
      select(equal(b, 0.0), real_like(b, -infinity), select(less(b, infinity), log2_f64(b), b));
  Value product = cast(y, DType::f64) * logarithm;
  return cast(exp2_f64(at_most(at_least(product, -200.0), 200.0)), DType::f32);
}

Value pow_f32(Value x, Value y) {
  Value magnitude = pow_magnitude(abs(x), y);
  Value half = y * 0.5;
  Value is_integer = equal(trunc(y), y), is_odd = is_integer & not_equal(trunc(half), half);
  // Odd powers of a negative base, including -0 and -infinity, are negative.
  Value is_negative = less(bitcast(x, DType::i32), 0);
  Value out = select(is_negative & is_odd, -magnitude, magnitude);
  out = select(less(x, 0.0) & ~is_integer & less(abs(x), infinity), real_like(x, nan), out);
  Value is_one = equal(x, 1.0) | equal(y, 0.0) | (equal(x, -1.0) & equal(abs(y), infinity));
  return select(is_one, real_like(x, 1), out);
}

// ---- sigmoids

// With e = exp(-|x|) nothing overflows, and small results keep their precision.
Value sigmoid_by_exp(Value x) {
  Value e = exp_f32(-abs(x));
  return quotient(select(less(x, 0.0), e, real_like(x, 1)), e + 1.0);
}

Value sigmoid_f32(Value x) {
  return has_avx512(x) ? detail::sigmoid_in_pieces(x, sigmoid_by_exp) : sigmoid_by_exp(x);
}

// x exp(x) / (1 + exp(x)) for negative x: scaled last, so that a subnormal result is rounded once.
Value silu_far(Value x) {
  Reduced d = reduce_by_ln2(-at_most(abs(x), 176.2));
  Value half = d.integer >> 1;
  // -127 gives 0.
  Value first = small_exp(d.r) * detail::power_of_two(half);
  Value second = detail::power_of_two(d.integer - half);
  return select(less(x, 0.0), x * first * second, x) / fma(first, second, 1.0);
}

// The same for |x| < 80, where nothing is subnormal.
Value silu_near(Value x) {
  Reduced d = reduce_by_ln2(-abs(x));
  Value e = small_exp(d.r) * detail::power_of_two(d.integer);
  return select(less(x, 0.0), x * e, x) / (e + 1.0);
}

Value silu_f32(Value x) {
  if (has_avx512(x)) return detail::silu_in_pieces(x, silu_far);
  return detail::or_beyond(x, 80.0, silu_near(x), [&] { return silu_far(x); });
}

// log(1 + e) for 0 <= e <= 1.
Value log1p_of_fraction(Value e) {
  Value is_large = greater(e, 0.41421356);
  Value f = select(is_large, fma(e, 0.5, -0.5), e), square = f * f;
  Value rest = fma(square, -0.5, square * f * polynomial(f, log1p_rest));
  return f + rest + select(is_large, real_like(e, detail::ln2), real_like(e, 0));
}

// max(x, 0) + log(1 + exp(-|x|))
Value softplus_by_exp(Value x) {
  return maximum(x, real_like(x, 0)) + log1p_of_fraction(exp_f32(-abs(x)));
}

Value softplus_f32(Value x) {
  return has_avx512(x) ? detail::softplus_in_pieces(x, softplus_by_exp) : softplus_by_exp(x);
}

// h / (h + 1) with h = expm1(2 |x|) / 2.
Value tanh_f32(Value x) {
  if (has_avx512(x)) return detail::tanh_in_pieces(x);
  Reduced d = reduce_by_ln2(at_most(abs(x), 9.02) * 2.0);
  Value half_power = detail::power_of_two(d.integer - 1);
  Value h = llvm::fma(small_expm1(d.r), half_power, half_power - 0.5);
  return copysign(quotient(h, h + 1.0), x);
}

// Beyond 1.25: 1 - erfc, whose 16th root is nearly a polynomial.
Value erf_f32(Value x) {
  if (has_avx512(x)) return detail::erf_in_pieces(x);
  constexpr double p[] = {1.12837911,    -0.37612325,     0.112810105,  -0.0267717801,
                          0.00506810425, -0.000718250754, 5.67246752e-5};
  constexpr double root[] = {0.999778032,    -0.0699079484, -0.0378227793,
                             -0.00377165317, 0.00281987968, -0.000265585579};
  Value a = at_most(abs(x), 3.93);
  Value t = polynomial(a, root);
  for (int squared = 0; squared < 3; ++squared) t = t * t;
  Value tail = fma(-t, t, 1.0);
  Value small = a * polynomial(a * a, p);
  return copysign(select(less(a, 1.25), small, tail), x);
}

// ---- hyperbolic functions

Value sinh_f32(Value x) {
  constexpr double p[] = {0.166666672, 0.00833331048, 0.000198428956, 2.78221319e-6};
  Value a = abs(x), v = a * a;
  Value small = llvm::fma(a * v, polynomial(v, p), a);
  Value h = half_exp(a);
  return copysign(select(less(a, 1.0), small, h - 0.25 / h), x);
}

Value cosh_f32(Value x) {
  Value h = half_exp(abs(x));
  return h + 0.25 / h;
}

// Above it log1p(2 x) and the inverse functions agree, and squares might overflow.
constexpr double large = 1e9;

Value asinh_f32(Value x) {
  Value a = abs(x), square = a * a;
  Value regular = a + square / (sqrt(square + 1.0) + 1.0);
  Value is_large = greater(a, large);
  Value y = log1p(select(is_large, a, regular));
  return copysign(select(is_large, y + detail::ln2, y), x);
}

Value acosh_f32(Value x) {
  Value t = x - 1.0;
  Value regular = t + sqrt(fma(t, 2.0, t * t));
  Value is_large = greater(x, large);
  Value y = log1p(select(is_large, x, regular));
  y = select(is_large, y + detail::ln2, y);
  return select(less(x, 1.0), real_like(x, nan), y);
}

Value atanh_f32(Value x) {
  Value a = abs(x);
  return copysign(log1p((a * 2.0) / (1.0 - a)) * 0.5, x);
}

Value by_helper(const char* name, Value a, Value b) {
  Value in[] = {a, b};
  return a.module->call_helper(name, in);
}

void meet_lanes(Value& a, Value& b) {
  a = broadcast(a, std::max(a.lanes(), b.lanes()));
  b = broadcast(b, a.lanes());
}

}  // namespace

Value exp_of_rounded(Value x) { return for_f32("exp", x, exp_of_rounded_f32); }
Value expm1(Value x) { return for_f32("expm1", x, expm1_f32); }
Value log1p(Value x) { return for_f32("log1p", x, log1p_f32); }
Value sinh(Value x) { return for_f32("sinh", x, sinh_f32); }
Value cosh(Value x) { return for_f32("cosh", x, cosh_f32); }
Value asinh(Value x) { return for_f32("asinh", x, asinh_f32); }
Value acosh(Value x) { return for_f32("acosh", x, acosh_f32); }
Value atanh(Value x) { return for_f32("atanh", x, atanh_f32); }

namespace {

Value exp(Value x) { return for_f32("exp", x, exp_f32); }

Value sigmoid(Value x) { return x.dtype() == DType::f32 ? sigmoid_f32(x) : 1.0 / (exp(-x) + 1.0); }

Value silu(Value x) { return x.dtype() == DType::f32 ? silu_f32(x) : x * sigmoid(x); }

Value softplus(Value x) {
  if (x.dtype() == DType::f32) return softplus_f32(x);
  return maximum(x, real_like(x, 0)) + log1p(exp(-abs(x)));
}

Value gelu_tanh(Value x) {
  if (x.dtype() == DType::f32) return detail::gelu_tanh_in_pieces(x);
  const double slope = 2 * std::sqrt(2 / M_PI);
  return x * sigmoid(x * fma(x * x, slope * 0.044715, slope));
}

Value gelu(Value x) {
  if (x.dtype() == DType::f32) return detail::gelu_in_pieces(x);
  Value argument = x * -std::sqrt(0.5);
  return x * 0.5 * x.module->call_helper("erfc", std::span(&argument, 1));
}

struct RealOp {
  const Op* op;
  RealFunction function;
};
constexpr RealOp real_ops[] = {
    {&ops::exp, exp},
    {&ops::log, [](Value x) { return for_f32("log", x, log_f32); }},
    {&ops::tanh, [](Value x) { return for_f32("tanh", x, tanh_f32); }},
    {&ops::erf, [](Value x) { return for_f32("erf", x, erf_f32); }},
    {&ops::sin, sin},
    {&ops::cos, cos},
    {&ops::sigmoid, sigmoid},
    {&ops::silu, silu},
    {&ops::softplus, softplus},
    {&ops::gelu, gelu},
    {&ops::gelu_tanh, gelu_tanh},
};

}  // namespace

RealFunction real_function(const Op& op) {
  const RealOp* found = std::ranges::find(real_ops, &op, &RealOp::op);
  return found == std::end(real_ops) ? nullptr : found->function;
}

Value pow(Value x, Value y) {
  meet_lanes(x, y);
  return x.dtype() == DType::f32 ? pow_f32(x, y) : by_helper("pow", x, y);
}

Value fmod(Value x, Value y) {
  meet_lanes(x, y);
  return by_helper(x.dtype() == DType::f32 ? "fmodf" : "fmod", x, y);
}

Value reciprocal(Value x) { return 1.0 / x; }
Value rsqrt(Value x) { return 1.0 / sqrt(x); }

Value sign(Value x) {
  if (!is_float(x.dtype())) {
    Value zero = like(x, 0), one = like(x, 1);
    Value positive = select(greater(x, zero), one, zero);
    return is_signed(x.dtype()) ? select(less(x, zero), -one, positive) : positive;
  }
  return select(greater(x, 0.0), real_like(x, 1), select(less(x, 0.0), real_like(x, -1), x));
}

}  // namespace hone::llvm
