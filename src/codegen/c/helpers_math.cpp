// Functions of real numbers in C. The f32 functions are those of codegen/llvm/math.h with divisions
// instead of estimates and a splitting of ln 2 that is exact without fused multiply-add. They use
// ?: instead of branches, so that loops over them vectorise. Coefficients: tools/minimax.
#include <span>

#include "codegen/c/helpers.h"

namespace hone::c {

namespace {

const Helper conversions[] = {
    {"bits_f32", "",
     R"(HONE_INLINE uint32_t hone_bits_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
)"},
    {"f32_bits", "",
     R"(HONE_INLINE float hone_f32_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
)"},
    {"bits_f64", "",
     R"(HONE_INLINE int64_t hone_bits_f64(double x) {
  int64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
)"},
    {"f64_bits", "",
     R"(HONE_INLINE double hone_f64_bits(int64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
)"},
    {"f32_of_f16", "bits_f32 f32_bits",
     R"(HONE_INLINE float hone_f32_of_f16(uint16_t h) {
  /* The product with 2^112 moves the exponent, that of subnormal numbers too. */
  const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = (uint32_t)(h & 0x7fffu) << 13;
  const uint32_t finite = hone_bits_f32(hone_f32_bits(rest) * 5.19229686e33f);
  return hone_f32_bits(sign | (rest >= 0x0f800000u ? rest | 0x7f800000u : finite));
}
)"},
    {"row_of_f16", "f32_of_f16",
     R"(#if defined(__F16C__)
#include <immintrin.h>
#endif
HONE_INLINE void hone_row_of_f16(float *to, const uint16_t *from, int64_t count) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(
        to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
#endif
  for (; i < count; ++i) to[i] = hone_f32_of_f16(from[i]);
}
)"},
    {"f16_of_f32", "bits_f32 f32_bits",
     R"(HONE_INLINE uint16_t hone_f16_of_f32(float x) {
  const uint32_t bits = hone_bits_f32(x), rest = bits & 0x7fffffffu;
  const uint32_t special = rest > 0x7f800000u ? 0x7e00u : 0x7c00u;
  /* Adding 1/2 rounds subnormal results and leaves them in the low bits. */
  const uint32_t small = hone_bits_f32(hone_f32_bits(rest) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1u)) >> 13;
  const uint32_t finite = rest < 0x38800000u ? small : normal;
  return (uint16_t)(((bits >> 16) & 0x8000u) | (rest >= 0x47800000u ? special : finite));
}
)"},
    {"f32_of_bf16", "f32_bits",
     R"(HONE_INLINE float hone_f32_of_bf16(uint16_t h) {
  return hone_f32_bits((uint32_t)h << 16);
}
)"},
    {"bf16_of_f32", "bits_f32",
     R"(HONE_INLINE uint16_t hone_bf16_of_f32(float x) {
  const uint32_t bits = hone_bits_f32(x);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (uint16_t)(x != x ? (bits >> 16) | 0x40u : rounded);
}
)"},
    {"odd_f32_of_f64", "bits_f32 f32_bits",
     R"(/* Inexact results are truncated and end in a one, so that rounding them once more to a shorter
   format is as if there had been one rounding. */
HONE_INLINE float hone_odd_f32_of_f64(double x) {
  const float rounded = (float)x;
  const uint32_t bits = hone_bits_f32(rounded);
  const uint32_t cut = bits - (fabs((double)rounded) > fabs(x) ? 1u : 0u);
  return (double)rounded == x || x != x ? rounded : hone_f32_bits(cut | 1u);
}
)"},
};

const Helper arithmetic_helpers[] = {
    {"zero", "",
     R"(/* A zero that compilers do not know, so that they make no constant of what decides about reading. */
static const volatile int64_t hone_zero = 0;
)"},
    {"fma_f32", "",
     R"(/* a b + c, rounded once where the machine does so. */
HONE_INLINE float hone_fma_f32(float a, float b, float c) {
#if HONE_FUSES
  return fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
)"},
    {"fma_f64", "",
     R"(/* a b + c, rounded once where the machine does so. */
HONE_INLINE double hone_fma_f64(double a, double b, double c) {
#if HONE_FUSES
  return fma(a, b, c);
#else
  return a * b + c;
#endif
}
)"},
    {"min_i64", "",
     R"(HONE_INLINE int64_t hone_min_i64(int64_t a, int64_t b) {
  return a < b ? a : b;
}
)"},
    {"max_i64", "",
     R"(HONE_INLINE int64_t hone_max_i64(int64_t a, int64_t b) {
  return a > b ? a : b;
}
)"},
    {"min_i32", "",
     R"(HONE_INLINE int32_t hone_min_i32(int32_t a, int32_t b) {
  return a < b ? a : b;
}
)"},
    {"max_i32", "",
     R"(HONE_INLINE int32_t hone_max_i32(int32_t a, int32_t b) {
  return a > b ? a : b;
}
)"},
    {"floor_div_i32", "",
     R"(HONE_INLINE int32_t hone_floor_div_i32(int32_t a, int32_t b) {
  const int32_t quotient = a / b, rest = a - quotient * b;
  return rest != 0 && (rest < 0) != (b < 0) ? quotient - 1 : quotient;
}
)"},
    {"floor_mod_i32", "",
     R"(HONE_INLINE int32_t hone_floor_mod_i32(int32_t a, int32_t b) {
  const int32_t rest = a - a / b * b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
)"},
    {"floor_div", "",
     R"(HONE_INLINE int64_t hone_floor_div(int64_t a, int64_t b) {
  const int64_t quotient = a / b, rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? quotient - 1 : quotient;
}
)"},
    {"floor_mod", "",
     R"(HONE_INLINE int64_t hone_floor_mod(int64_t a, int64_t b) {
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
)"},
    {"max_f32", "",
     R"(/* NaN wins. */
HONE_INLINE float hone_max_f32(float a, float b) {
  const float m = a > b ? a : b;
  return a == a ? m : a;
}
)"},
    {"min_f32", "",
     R"(/* NaN wins. */
HONE_INLINE float hone_min_f32(float a, float b) {
  const float m = a < b ? a : b;
  return a == a ? m : a;
}
)"},
    {"max_f64", "",
     R"(/* NaN wins. */
HONE_INLINE double hone_max_f64(double a, double b) {
  const double m = a > b ? a : b;
  return a == a ? m : a;
}
)"},
    {"min_f64", "",
     R"(/* NaN wins. */
HONE_INLINE double hone_min_f64(double a, double b) {
  const double m = a < b ? a : b;
  return a == a ? m : a;
}
)"},
    {"sign_f32", "",
     R"(HONE_INLINE float hone_sign_f32(float x) {
  return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x;
}
)"},
    {"sign_f64", "",
     R"(HONE_INLINE double hone_sign_f64(double x) {
  return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x;
}
)"},
};

const Helper exponentials[] = {
    {"power_of_two", "f32_bits",
     R"(/* 2^n for -126 <= n <= 127. */
HONE_INLINE float hone_power_of_two(int32_t n) {
  return hone_f32_bits(((uint32_t)n + 127u) << 23);
}
)"},
    {"small_expm1", "fma_f32",
     R"(/* exp(r) - 1 for |r| <= ln 2 / 2. */
HONE_INLINE float hone_small_expm1(float r) {
  float p = 0.00138702185f;
  p = hone_fma_f32(p, r, 0.00836701319f);
  p = hone_fma_f32(p, r, 0.0416674502f);
  p = hone_fma_f32(p, r, 0.166665405f);
  p = hone_fma_f32(p, r, 0.49999997f);
  return hone_fma_f32(r * r, p, r);
}
)"},
    {"polynomial_exp_f32", "bits_f32 power_of_two small_expm1 fma_f32",
     R"(HONE_INLINE float hone_polynomial_exp_f32(float x) {
  const float bounded = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
  /* The sum with 1.5 * 2^23 holds the nearest integer in its low bits. */
  const float t = hone_fma_f32(bounded, 1.44269504f, 12582912.0f), n = t - 12582912.0f;
  const float r = hone_fma_f32(n, 2.12194440e-4f, hone_fma_f32(n, -0.693359375f, bounded));
  const int32_t k = (int32_t)(hone_bits_f32(t) - 0x4b400000u), half = k >> 1;
  return (hone_small_expm1(r) + 1.0f) * hone_power_of_two(half) * hone_power_of_two(k - half);
}
)"},
    {"exp_f32", "polynomial_exp_f32",
     R"(HONE_INLINE float hone_exp_f32(float x) {
  return hone_polynomial_exp_f32(x);
}
)"},
    {"log_f32", "bits_f32 f32_bits fma_f32",
     R"(HONE_INLINE float hone_log_f32(float x) {
  /* x = m 2^e, m in [sqrt(1/2), sqrt(2)), f = m - 1 */
  const bool is_small = x < 1.17549435e-38f;
  const int32_t bits = (int32_t)hone_bits_f32(is_small ? x * 8388608.0f : x);
  const int32_t exponent = (bits - 0x3f3504f3) >> 23;
  const float f = hone_f32_bits((uint32_t)bits - ((uint32_t)exponent << 23)) - 1.0f;
  const float e = (float)exponent - (is_small ? 23.0f : 0.0f), square = f * f;
  float p = -0.0763636306f, rest, y;
  p = hone_fma_f32(p, f, 0.12762183f);
  p = hone_fma_f32(p, f, -0.131596163f);
  p = hone_fma_f32(p, f, 0.14201583f);
  p = hone_fma_f32(p, f, -0.166234091f);
  p = hone_fma_f32(p, f, 0.200012416f);
  p = hone_fma_f32(p, f, -0.250008196f);
  p = hone_fma_f32(p, f, 0.333333313f);
  rest = hone_fma_f32(square * f, p, e * -2.12194440e-4f);
  rest = hone_fma_f32(square, -0.5f, rest);
  y = hone_fma_f32(e, 0.693359375f, f + rest);
  y = x < INFINITY ? y : x;
  return x > 0.0f ? y : x == 0.0f ? -INFINITY : x < 0.0f ? NAN : x;
}
)"},
    {"sigmoid_f32", "exp_f32",
     R"(HONE_INLINE float hone_sigmoid_f32(float x) {
  const float e = hone_exp_f32(-fabsf(x));
  return (x < 0.0f ? e : 1.0f) / (e + 1.0f);
}
)"},
    {"sigmoid_f64", "",
     R"(HONE_INLINE double hone_sigmoid_f64(double x) {
  const double e = exp(-fabs(x));
  return (x < 0.0 ? e : 1.0) / (e + 1.0);
}
)"},
    {"silu_f32", "bits_f32 power_of_two small_expm1 fma_f32",
     R"(HONE_INLINE float hone_silu_f32(float x) {
  /* As sigmoid, but scaled last, so that a subnormal result is rounded once; far below by 0. */
  const float a = fabsf(x), bounded = a > 176.2f ? -176.2f : -a;
  const float t = hone_fma_f32(bounded, 1.44269504f, 12582912.0f), n = t - 12582912.0f;
  const float r = hone_fma_f32(n, 2.12194440e-4f, hone_fma_f32(n, -0.693359375f, bounded));
  const int32_t k = (int32_t)(hone_bits_f32(t) - 0x4b400000u), half = k >> 1;
  const float first = (hone_small_expm1(r) + 1.0f) * hone_power_of_two(half);
  const float second = hone_power_of_two(k - half);
  return (x < 0.0f ? x * first * second : x) / hone_fma_f32(first, second, 1.0f);
}
)"},
    {"silu_f64", "sigmoid_f64",
     R"(HONE_INLINE double hone_silu_f64(double x) {
  return x * hone_sigmoid_f64(x);
}
)"},
    {"softplus_f32", "exp_f32 max_f32 fma_f32",
     R"(HONE_INLINE float hone_softplus_f32(float x) {
  /* log(1 + e) as of log_f32, with the exponents 0 and 1 only */
  const float e = hone_exp_f32(-fabsf(x));
  const bool is_large = e > 0.41421356f;
  const float f = is_large ? hone_fma_f32(e, 0.5f, -0.5f) : e, square = f * f;
  float p = -0.0763636306f, rest;
  p = hone_fma_f32(p, f, 0.12762183f);
  p = hone_fma_f32(p, f, -0.131596163f);
  p = hone_fma_f32(p, f, 0.14201583f);
  p = hone_fma_f32(p, f, -0.166234091f);
  p = hone_fma_f32(p, f, 0.200012416f);
  p = hone_fma_f32(p, f, -0.250008196f);
  p = hone_fma_f32(p, f, 0.333333313f);
  rest = hone_fma_f32(square * f, p, square * -0.5f);
  return hone_max_f32(x, 0.0f) + ((f + rest) + (is_large ? 0.693147181f : 0.0f));
}
)"},
    {"softplus_f64", "max_f64",
     R"(HONE_INLINE double hone_softplus_f64(double x) {
  return hone_max_f64(x, 0.0) + log1p(exp(-fabs(x)));
}
)"},
    {"gelu_tanh_f32", "power_of_two small_expm1 fma_f32 fma_f64",
     R"(HONE_INLINE float hone_gelu_tanh_f32(float x) {
  /* x sigmoid(z(x)): exp(-z) has z times the relative error of z, so that is in f64. */
  const float magnitude = fabsf(x), a = magnitude > 11.0f ? 11.0f : magnitude;
  const double v = (double)a;
  const double z = -v * hone_fma_f64(v * v, 0.07135481627260025, 1.5957691216057308);
  const double t = hone_fma_f64(z, 1.44269504088896341, 6755399441055744.0);
  const double n = t - 6755399441055744.0;
  const float p = hone_small_expm1((float)hone_fma_f64(n, -0.693147180559945309, z)) + 1.0f;
  const int32_t k = (int32_t)n, half = k >> 1;
  const float high = hone_power_of_two(half), low = hone_power_of_two(k - half);
  const float y = a * p / hone_fma_f32(p * high, low, 1.0f) * high * low;
  return x < 0.0f ? -(y - (x - x)) : x - y; /* NaN for -infinity; 0 x is 0 to some compilers */
}
)"},
    {"gelu_tanh_f64", "sigmoid_f64 fma_f64",
     R"(HONE_INLINE double hone_gelu_tanh_f64(double x) {
  return x * hone_sigmoid_f64(x * hone_fma_f64(x * x, 0.07135481627260025, 1.5957691216057308));
}
)"},
    {"gelu_f32", "erf_f32",
     R"(HONE_INLINE float hone_gelu_f32(float x) {
  return x * 0.5f * (hone_erf_f32(x * 0.70710678f) + 1.0f);
}
)"},
    {"gelu_f64", "",
     R"(HONE_INLINE double hone_gelu_f64(double x) {
  return x * 0.5 * erfc(x * -0.70710678118654752);
}
)"},
    {"tanh_f32", "bits_f32 power_of_two small_expm1 fma_f32",
     R"(HONE_INLINE float hone_tanh_f32(float x) {
  /* h / (h + 1) with h = expm1(2 |x|) / 2 */
  const float a = fabsf(x), twice = (a > 9.02f ? 9.02f : a) * 2.0f;
  const float t = hone_fma_f32(twice, 1.44269504f, 12582912.0f), n = t - 12582912.0f;
  const float r = hone_fma_f32(n, 2.12194440e-4f, hone_fma_f32(n, -0.693359375f, twice));
  const float half_power = hone_power_of_two((int32_t)(hone_bits_f32(t) - 0x4b400000u) - 1);
  const float h = hone_fma_f32(hone_small_expm1(r), half_power, half_power - 0.5f);
  return copysignf(h / (h + 1.0f), x);
}
)"},
    {"erf_f32", "fma_f32",
     R"(HONE_INLINE float hone_erf_f32(float x) {
  const float magnitude = fabsf(x), a = magnitude > 3.93f ? 3.93f : magnitude, v = a * a;
  float p = 5.67246752e-5f, t = -0.000265585579f;
  p = hone_fma_f32(p, v, -0.000718250754f);
  p = hone_fma_f32(p, v, 0.00506810425f);
  p = hone_fma_f32(p, v, -0.0267717801f);
  p = hone_fma_f32(p, v, 0.112810105f);
  p = hone_fma_f32(p, v, -0.37612325f);
  p = hone_fma_f32(p, v, 1.12837911f);
  /* Beyond 1.25: 1 - erfc, whose 16th root is nearly a polynomial. */
  t = hone_fma_f32(t, a, 0.00281987968f);
  t = hone_fma_f32(t, a, -0.00377165317f);
  t = hone_fma_f32(t, a, -0.0378227793f);
  t = hone_fma_f32(t, a, -0.0699079484f);
  t = hone_fma_f32(t, a, 0.999778032f);
  t = t * t;
  t = t * t;
  t = t * t;
  return copysignf(a < 1.25f ? a * p : hone_fma_f32(-t, t, 1.0f), x);
}
)"},
};

const Helper others[] = {
    {"sin_of_small", "fma_f32",
     R"(HONE_INLINE float hone_sin_of_small(float r) {
  const float v = r * r;
  float p = hone_fma_f32(v, -0.000195179091f, 0.00833218731f);
  p = hone_fma_f32(p, v, -0.166666552f);
  return hone_fma_f32(r * v, p, r);
}
)"},
    {"cos_of_small", "fma_f32",
     R"(HONE_INLINE float hone_cos_of_small(float r) {
  const float v = r * r;
  float p = hone_fma_f32(v, 2.44323383e-5f, -0.00138873095f);
  p = hone_fma_f32(p, v, 0.0416666456f);
  return hone_fma_f32(v * v, p, hone_fma_f32(v, -0.5f, 1.0f));
}
)"},
    {"sine_wave", "bits_f32 f32_bits bits_f64 sin_of_small cos_of_small fma_f64",
     R"(/* The sine of x + shift pi/2 for |x| < 10^6: x = k pi/2 + r, |r| <= pi/4. */
HONE_INLINE float hone_sine_wave(float x, int32_t shift) {
  const double t = hone_fma_f64((double)x, 0.63661977236758134308, 6755399441055744.0);
  const double n = t - 6755399441055744.0;
  const double high = hone_fma_f64(n, -1.57079632679489661923, (double)x);
  const float r = (float)hone_fma_f64(n, -6.123233995736766036e-17, high);
  const uint32_t k = (uint32_t)(uint64_t)hone_bits_f64(t) + (uint32_t)shift;
  const float y = (k & 1u) != 0 ? hone_cos_of_small(r) : hone_sin_of_small(r);
  return hone_f32_bits(hone_bits_f32(y) ^ ((k & 2u) << 30));
}
)"},
    {"sin_f32", "sine_wave",
     R"(HONE_INLINE float hone_sin_f32(float x) {
  if (!(fabsf(x) < 1e6f)) return sinf(x);
  return x == 0.0f ? x : hone_sine_wave(x, 0);
}
)"},
    {"cos_f32", "sine_wave",
     R"(HONE_INLINE float hone_cos_f32(float x) {
  if (!(fabsf(x) < 1e6f)) return cosf(x);
  return hone_sine_wave(x, 1);
}
)"},
    {"log2_f64", "bits_f64 f64_bits fma_f64",
     R"(/* log2 of positive x, relative error 2^-45: 2 atanh(s) / ln 2 with s = (m - 1) / (m + 1). */
HONE_INLINE double hone_log2_f64(double x) {
  const int64_t bits = hone_bits_f64(x);
  const int32_t exponent = (int32_t)((bits - INT64_C(0x3fe6a09e667f3bcd)) >> 52);
  const uint64_t rest = (uint64_t)bits - ((uint64_t)exponent << 52);
  const double m = hone_f64_bits((int64_t)rest), s = (m - 1.0) / (m + 1.0), v = s * s;
  double p = 0.2828982789338696;
  p = hone_fma_f64(p, v, 0.31990585617459216);
  p = hone_fma_f64(p, v, 0.41220924755810806);
  p = hone_fma_f64(p, v, 0.57707794242710253);
  p = hone_fma_f64(p, v, 0.96179669411302848);
  p = hone_fma_f64(p, v, 2.8853900817778504);
  return hone_fma_f64(s, p, (double)exponent);
}
)"},
    {"exp2_f64", "bits_f64 f64_bits fma_f64",
     R"(/* 2^x for |x| < 1000, relative error 2^-34. */
HONE_INLINE double hone_exp2_f64(double x) {
  const double t = x + 6755399441055744.0, r = x - (t - 6755399441055744.0);
  double p = 1.5196147869082199e-5;
  p = hone_fma_f64(p, r, 0.00015466757785988295);
  p = hone_fma_f64(p, r, 0.0013333935091816721);
  p = hone_fma_f64(p, r, 0.0096180381265580338);
  p = hone_fma_f64(p, r, 0.055504103659522526);
  p = hone_fma_f64(p, r, 0.24022651066609163);
  p = hone_fma_f64(p, r, 0.69314718070453729);
  p = hone_fma_f64(p, r, 1.0);
  return hone_f64_bits(
      (int64_t)((uint64_t)hone_bits_f64(p) + ((uint64_t)hone_bits_f64(t) << 52)));
}
)"},
    {"pow_f32", "bits_f32 log2_f64 exp2_f64",
     R"(HONE_INLINE float hone_pow_f32(float x, float y) {
  const double b = (double)fabsf(x);
  const double logarithm =
      b == 0.0 ? -(double)INFINITY : b < (double)INFINITY ? hone_log2_f64(b) : b;
  const double product = (double)y * logarithm;
  const double bounded = product < -200.0 ? -200.0 : product > 200.0 ? 200.0 : product;
  const float magnitude = (float)hone_exp2_f64(bounded), half = y * 0.5f;
  const bool is_integer = truncf(y) == y, is_odd = is_integer && truncf(half) != half;
  /* A negative base, -0 and -infinity included, gives its sign to odd powers. */
  const bool is_negative = (hone_bits_f32(x) >> 31) != 0;
  float out = is_negative && is_odd ? -magnitude : magnitude;
  out = x < 0.0f && !is_integer && fabsf(x) < INFINITY ? NAN : out;
  return x == 1.0f || y == 0.0f || (x == -1.0f && fabsf(y) == INFINITY) ? 1.0f : out;
}
)"},
};

}  // namespace

const std::vector<Helper>& math_helpers() {
  static const std::vector<Helper> all = [] {
    std::vector<Helper> out;
    for (std::span<const Helper> list :
         {std::span<const Helper>(conversions), std::span<const Helper>(arithmetic_helpers),
          std::span<const Helper>(exponentials), std::span<const Helper>(others)})
      for (const Helper& h : list) out.push_back(h);
    return out;
  }();
  return all;
}

}  // namespace hone::c
