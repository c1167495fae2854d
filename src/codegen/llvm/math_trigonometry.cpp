// Trigonometric functions and their inverses. Coefficients: tools/minimax.
#include <cmath>

#include "codegen/llvm/math_detail.h"

namespace hone::llvm {

namespace {

using detail::fma;
using detail::for_f32;
using detail::polynomial;

constexpr double half_pi_high = 1.57079637050628662109375, half_pi_low = -4.37113900018624283e-8;

// x = k pi/2 + r, |r| <= pi/4: the sine and cosine of r, and k modulo 4.
struct Quadrant {
  Value sin, cos, k;
};

Value sin_of_small(Value r) {
  constexpr double p[] = {-0.166666552, 0.00833218731, -0.000195179091};
  Value v = r * r;
  return llvm::fma(r * v, polynomial(v, p), r);
}

Value cos_of_small(Value r) {
  constexpr double p[] = {0.0416666456, -0.00138873095, 2.44323383e-5};
  Value v = r * r;
  return llvm::fma(v * v, polynomial(v, p), fma(v, -0.5, 1.0));
}

// Reduced in f64 with pi/2 in two parts: the error is about 2^-60 as long as k < 2^40.
Quadrant quadrant(Value x) {
  constexpr double two_over_pi = 0.63661977236758134308, rounder = 6755399441055744.0;
  constexpr double high = 1.57079632679489661923, low = 6.123233995736766036e-17;
  Value wide = cast(x, DType::f64);
  Value t = fma(wide, two_over_pi, rounder);
  Value k = t - rounder;
  Value r = cast(fma(k, -low, fma(k, -high, wide)), DType::f32);
  return {sin_of_small(r), cos_of_small(r), cast(bitcast(t, DType::i64), DType::i32)};
}

Value flip_sign(Value v, Value bit1) {  // where bit 1 is set
  return bitcast(bitcast(v, DType::i32) ^ ((bit1 & 2) << 30), DType::f32);
}

Value sin_regular(Value x) {
  Quadrant q = quadrant(x);
  Value y = flip_sign(select(equal(q.k & 1, 0), q.sin, q.cos), q.k);
  return select(equal(x, 0.0), x, y);
}

Value cos_regular(Value x) {
  Quadrant q = quadrant(x);
  return flip_sign(select(equal(q.k & 1, 0), q.cos, q.sin), q.k + 1);
}

Value tan_regular(Value x) {
  Quadrant q = quadrant(x);
  Value is_even = equal(q.k & 1, 0);
  Value y = select(is_even, q.sin, -q.cos) / select(is_even, q.cos, q.sin);
  return select(equal(x, 0.0), x, y);
}

// The C library handles arguments beyond 2^40, which are rare.
Value unless_huge(const char* name, Value x, Value (*regular)(Value)) {
  Value is_huge = any(greater(abs(x), 0x1p40));
  return x.module->if_values(
      is_huge, [&] { return Values{x.module->call_helper(name, std::span(&x, 1))}; },
      [&] { return Values{regular(x)}; })[0];
}

Value sin_f32(Value x) { return unless_huge("sinf", x, sin_regular); }
Value cos_f32(Value x) { return unless_huge("cosf", x, cos_regular); }
Value tan_f32(Value x) { return unless_huge("tanf", x, tan_regular); }

Value atan_f32(Value x) {
  constexpr double p[] = {-0.333331525,  0.199937686,  -0.142110229,  0.106658801,
                          -0.0755195245, 0.0432087928, -0.0163660496, 0.00292022387};
  Value a = abs(x), is_large = greater(a, 1.0);
  Value z = select(is_large, 1.0 / a, a), v = z * z;
  Value y = llvm::fma(z * v, polynomial(v, p), z);
  y = select(is_large, (half_pi_high - y) + half_pi_low, y);
  return copysign(y, x);
}

// asin(s) where v = s * s and s <= 1/2.
Value asin_of_small(Value s, Value v) {
  constexpr double p[] = {0.166667521, 0.0749531016, 0.0454690196, 0.0241855029, 0.042157013};
  return llvm::fma(s * v, polynomial(v, p), s);
}

// Beyond 1/2: asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)).
Value asin_f32(Value x) {
  Value a = abs(x), is_large = greater(a, 0.5);
  Value v = select(is_large, (1.0 - a) * 0.5, a * a);
  Value s = asin_of_small(select(is_large, sqrt(v), a), v);
  Value y = select(is_large, half_pi_high - (s * 2.0 - half_pi_low), s);
  return copysign(y, x);
}

Value acos_f32(Value x) {
  Value a = abs(x), is_large = greater(a, 0.5);
  Value v = select(is_large, (1.0 - a) * 0.5, a * a);
  Value s = asin_of_small(select(is_large, sqrt(v), x), v);
  Value twice = s * 2.0;
  Value beyond = select(less(x, 0.0), 2 * half_pi_high - (twice - 2 * half_pi_low), twice);
  return select(is_large, beyond, half_pi_high - (s - half_pi_low));
}

}  // namespace

Value sin(Value x) { return for_f32("sin", x, sin_f32); }
Value cos(Value x) { return for_f32("cos", x, cos_f32); }
Value tan(Value x) { return for_f32("tan", x, tan_f32); }
Value asin(Value x) { return for_f32("asin", x, asin_f32); }
Value acos(Value x) { return for_f32("acos", x, acos_f32); }
Value atan(Value x) { return for_f32("atan", x, atan_f32); }

}  // namespace hone::llvm
