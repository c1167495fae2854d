// Functions of real numbers that GLSL lacks: functions of doubles, remainders, and sines of large
// numbers. Written as C like all helpers; see backend/vulkan/target/glsl.h.
#include "backend/vulkan/target/glsl_math.h"

namespace hone::c {

namespace {

constexpr Helper doubles[] = {
    {"two_to", "f64_bits",
     R"(/* 2^n for -1022 <= n <= 1023. */
double hone_two_to(int32_t n) {
  return hone_f64_bits((int64_t)(n + 1023) << 52);
}
)"},
    {"small_expm1_f64", "",
     R"(/* exp(r) - 1 for |r| <= ln 2 / 2: the Taylor series. */
double hone_small_expm1_f64(double r) {
  double p = 1.6059043836821613e-10;
  p = p * r + 2.0876756987868099e-9;
  p = p * r + 2.5052108385441719e-8;
  p = p * r + 2.7557319223985891e-7;
  p = p * r + 2.7557319223985893e-6;
  p = p * r + 2.4801587301587302e-5;
  p = p * r + 1.9841269841269841e-4;
  p = p * r + 1.3888888888888889e-3;
  p = p * r + 8.3333333333333333e-3;
  p = p * r + 4.1666666666666667e-2;
  p = p * r + 1.6666666666666667e-1;
  p = p * r + 0.5;
  return p * r * r + r;
}
)"},
    {"exp_f64", "two_to small_expm1_f64",
     R"(double hone_exp_f64(double x) {
  const double bounded = x < -746.0 ? -746.0 : x > 710.0 ? 710.0 : x;
  const double n = rint(bounded * 1.4426950408889634);
  const double r = bounded - n * 0.69314718036912382 - n * 1.9082149292705877e-10;
  const int32_t k = (int32_t)n, first = k >> 1;
  return (hone_small_expm1_f64(r) + 1.0) * hone_two_to(first) * hone_two_to(k - first);
}
)"},
    {"expm1_f64", "two_to small_expm1_f64",
     R"(/* For x <= 60. */
double hone_expm1_f64(double x) {
  const double n = rint(x * 1.4426950408889634);
  const double r = x - n * 0.69314718036912382 - n * 1.9082149292705877e-10;
  const double power = hone_two_to((int32_t)n);
  return hone_small_expm1_f64(r) * power + (power - 1.0);
}
)"},
    {"log_f64", "bits_f64 f64_bits",
     R"(/* x = m 2^e, m in [sqrt(1/2), sqrt(2)): e ln 2 + 2 atanh((m - 1) / (m + 1)). */
double hone_log_f64(double x) {
  const int64_t bits = hone_bits_f64(x);
  const int32_t e = (int32_t)((bits - INT64_C(0x3fe6a09e667f3bcd)) >> 52);
  const double m = hone_f64_bits(bits - ((int64_t)e << 52)), f = m - 1.0;
  const double s = f / (m + 1.0), v = s * s, power = (double)e;
  double p = 0.08695652173913043;
  p = p * v + 0.095238095238095238;
  p = p * v + 0.10526315789473684;
  p = p * v + 0.11764705882352941;
  p = p * v + 0.13333333333333333;
  p = p * v + 0.15384615384615385;
  p = p * v + 0.18181818181818182;
  p = p * v + 0.22222222222222222;
  p = p * v + 0.2857142857142857;
  p = p * v + 0.4;
  p = p * v + 0.66666666666666667;
  /* 2 s is f - s f, which is exact where f is small. */
  const double rest = s * v * p - s * f + power * 1.9082149292705877e-10;
  const double y = power * 0.69314718036912382 + (f + rest);
  return x > 0.0 ? (x < (double)INFINITY ? y : x)
         : x == 0.0 ? -(double)INFINITY : x < 0.0 ? (double)NAN : x;
}
)"},
    {"log1p_f64", "log_f64",
     R"(/* For x >= 0. */
double hone_log1p_f64(double x) {
  const double u = 1.0 + x;
  return hone_log_f64(u) - ((u - 1.0) - x) / u;
}
)"},
    {"sigmoid_f64", "exp_f64",
     R"(double hone_sigmoid_f64(double x) {
  const double e = hone_exp_f64(-fabs(x));
  return (x < 0.0 ? e : 1.0) / (e + 1.0);
}
)"},
    {"softplus_f64", "exp_f64 log1p_f64 max_f64",
     R"(double hone_softplus_f64(double x) {
  return hone_max_f64(x, 0.0) + hone_log1p_f64(hone_exp_f64(-fabs(x)));
}
)"},
    {"tanh_f64", "expm1_f64",
     R"(double hone_tanh_f64(double x) {
  const double a = fabs(x), t = hone_expm1_f64((a > 22.0 ? 22.0 : a) * 2.0), y = t / (t + 2.0);
  return x < 0.0 ? -y : x > 0.0 ? y : x;
}
)"},
    {"erfc_f64", "exp_f64",
     R"(/* Of x >= 0: a series of positive terms, then a continued fraction. */
double hone_erfc_f64(double x) {
  const double scale = hone_exp_f64(-x * x) * 0.56418958354775629;
  if (x < 2.5) {
    double sum = x, term = x;
    for (int32_t n = 1; n < 60; ++n) {
      term = term * (2.0 * x * x / (double)(2 * n + 1));
      sum = sum + term;
    }
    return 1.0 - 2.0 * scale * sum;
  }
  double tail = x;
  for (int32_t n = 60; n > 0; --n) tail = x + (double)n * 0.5 / tail;
  return x > 27.3 ? 0.0 : scale / tail;
}
)"},
    {"erf_f64", "exp_f64 erfc_f64",
     R"(double hone_erf_f64(double x) {
  const double a = fabs(x);
  double y = 1.0 - hone_erfc_f64(a);
  if (a < 1.0) {
    double term = a;
    y = a;
    for (int32_t n = 1; n < 30; ++n) {
      term = term * (2.0 * a * a / (double)(2 * n + 1));
      y = y + term;
    }
    y = y * hone_exp_f64(-a * a) * 1.1283791670955126;
  }
  return x < 0.0 ? -y : x > 0.0 ? y : x;
}
)"},
    {"gelu_f64", "erfc_f64",
     R"(double hone_gelu_f64(double x) {
  const double tail = hone_erfc_f64(fabs(x) * 0.70710678118654752);
  return x == -(double)INFINITY ? -0.0 : x * 0.5 * (x < 0.0 ? tail : 2.0 - tail);
}
)"},
    {"pow_f64", "exp_f64 log_f64 bits_f64",
     R"(/* Whole exponents by squaring; others lose as many bits as y log(x) has. */
double hone_pow_f64(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  const double a = fabs(x), whole = trunc(y);
  const bool is_whole = whole == y, is_odd = is_whole && trunc(y * 0.5) * 2.0 != y;
  double magnitude;
  if (is_whole && fabs(y) <= 1024.0) {
    double power = a;
    magnitude = 1.0;
    for (int32_t n = (int32_t)fabs(y); n > 0; n >>= 1) {
      if ((n & 1) != 0) magnitude = magnitude * power;
      power = power * power;
    }
    if (y < 0.0) magnitude = 1.0 / magnitude;
  } else {
    const double product = y * hone_log_f64(a);
    magnitude = x == -1.0 ? 1.0 : hone_exp_f64(product);
  }
  const bool is_negative = hone_bits_f64(x) < INT64_C(0);
  if (x < 0.0 && !is_whole && a < (double)INFINITY) return (double)NAN;
  return is_negative && is_odd ? -magnitude : magnitude;
}
)"},
};

constexpr Helper waves[] = {
    {"large_angle", "bits_f64",
     R"(/* x = k pi/2 + r for |x| >= 2^16, by the bits of 2 / pi that matter. */
const uint32_t hone_two_over_pi[42] = {
    0x00000000u, 0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u,
    0x3c439041u, 0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu,
    0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u,
    0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu,
    0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u,
    0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu, 0xf0cfbc20u, 0x9af4361du};
double hone_large_angle(double x, inout int32_t k) {
  const uint64_t bits = (uint64_t)hone_bits_f64(x);
  const int32_t e = (int32_t)(bits >> 52 & 2047ul) - 1075, start = 62 + e;
  const uint64_t m = (bits & 0xffffffffffffful) | 0x10000000000000ul;
  const uint64_t low = m & 0xfffffffful, high = m >> 32;
  uint32_t product[6];
  uint64_t carry_low = 0ul, carry_high = 0ul;
  uint32_t before = 0u;
  for (int32_t i = 0; i < 6; ++i) {
    /* The i-th word from the end of 192 bits of 2 / pi. */
    const int32_t at = start + 32 * (5 - i), word = at >> 5, shift = at & 31;
    const uint64_t two = (uint64_t)hone_two_over_pi[word] << 32 | (uint64_t)hone_two_over_pi[word + 1];
    const uint32_t w = (uint32_t)(two >> (32 - shift));
    const uint64_t a = low * (uint64_t)w + carry_low;
    carry_low = a >> 32;
    const uint64_t b = high * (uint64_t)before + (a & 0xfffffffful) + carry_high;
    carry_high = b >> 32;
    product[i] = (uint32_t)b;
    before = w;
  }
  uint64_t first = (uint64_t)product[5] << 32 | (uint64_t)product[4];
  uint64_t second = (uint64_t)product[3] << 32 | (uint64_t)product[2];
  k = (int32_t)(first >> 62);
  first = first << 2 | second >> 62;
  second = second << 2;
  const bool is_upper = first >> 63 != 0ul;
  if (is_upper) {
    k = k + 1;
    first = ~first;
    second = ~second;
  }
  double r = (double)first * 5.4210108624275222e-20 + (double)second * 2.9387358770557188e-39;
  r = r * 1.5707963267948966;
  r = is_upper ? -r : r;
  if (x < 0.0) k = -k;
  return x < 0.0 ? -r : r;
}
)"},
    {"wave_f64", "large_angle",
     R"(/* The sine of x + shift pi/2. */
double hone_wave_f64(double x, int32_t shift) {
  if (!(fabs(x) < (double)INFINITY)) return (double)NAN;
  int32_t k = 0;
  double r;
  if (fabs(x) < 1e5) {
    const double n = rint(x * 0.63661977236758134);
    r = x - n * 1.5707963267341256 - n * 6.0771005063039660e-11 - n * 2.0222662487959506e-21;
    k = (int32_t)n;
  } else {
    r = hone_large_angle(x, k);
  }
  k = k + shift;
  const double v = r * r;
  double s = 1.58969099521155010221e-10, c = -1.13596475577881948265e-11;
  s = s * v - 2.50507602534068634195e-8;
  s = s * v + 2.75573137070700676789e-6;
  s = s * v - 1.98412698298579493134e-4;
  s = s * v + 8.33333333332248946124e-3;
  s = s * v - 1.66666666666666324348e-1;
  s = s * v * r + r;
  c = c * v + 2.08757232129817482790e-9;
  c = c * v - 2.75573143513906633035e-7;
  c = c * v + 2.48015872894767294178e-5;
  c = c * v - 1.38888888888741095749e-3;
  c = c * v + 4.16666666666666019037e-2;
  c = 1.0 - (0.5 * v - v * v * c);
  const double y = (k & 1) != 0 ? c : s;
  return (k & 2) != 0 ? -y : y;
}
)"},
    {"sin_f64", "wave_f64",
     R"(double hone_sin_f64(double x) {
  return x == 0.0 ? x : hone_wave_f64(x, 0);
}
)"},
    {"cos_f64", "wave_f64",
     R"(double hone_cos_f64(double x) {
  return hone_wave_f64(x, 1);
}
)"},
    {"sin_f32", "sine_wave wave_f64",
     R"(float hone_sin_f32(float x) {
  if (!(fabsf(x) < 1e5f)) return (float)hone_wave_f64((double)x, 0);
  return x == 0.0f ? x : hone_sine_wave(x, 0);
}
)"},
    {"cos_f32", "sine_wave wave_f64",
     R"(float hone_cos_f32(float x) {
  if (!(fabsf(x) < 1e5f)) return (float)hone_wave_f64((double)x, 1);
  return hone_sine_wave(x, 1);
}
)"},
    {"rem_f32", "bits_f32 f32_bits",
     R"(/* Multiples of the divisor are subtracted, which is exact. */
float hone_rem_f32(float x, float y) {
  float a = fabsf(x);
  const float b = fabsf(y);
  if (!(a < INFINITY) || b == 0.0f || b != b) return NAN;
  while (a >= b) {
    uint32_t step = (hone_bits_f32(a) >> 23) - (hone_bits_f32(b) >> 23);
    float part = hone_f32_bits(hone_bits_f32(b) + (step << 23));
    if (part > a) part = hone_f32_bits(hone_bits_f32(b) + ((step - 1u) << 23));
    a = a - part;
  }
  return a == 0.0f ? x * 0.0f : x < 0.0f ? -a : a;
}
)"},
    {"rem_f64", "bits_f64 f64_bits",
     R"(double hone_rem_f64(double x, double y) {
  double a = fabs(x);
  const double b = fabs(y);
  if (!(a < (double)INFINITY) || b == 0.0 || b != b) return (double)NAN;
  while (a >= b) {
    int64_t step = (hone_bits_f64(a) >> 52) - (hone_bits_f64(b) >> 52);
    double part = hone_f64_bits(hone_bits_f64(b) + (step << 52));
    if (part > a) part = hone_f64_bits(hone_bits_f64(b) + ((step - INT64_C(1)) << 52));
    a = a - part;
  }
  return a == 0.0 ? x * 0.0 : x < 0.0 ? -a : a;
}
)"},
};

}  // namespace

const std::vector<Helper>& glsl_math_helpers() {
  static const std::vector<Helper> all = [] {
    std::vector<Helper> out(std::begin(doubles), std::end(doubles));
    out.insert(out.end(), std::begin(waves), std::end(waves));
    return out;
  }();
  return all;
}

}  // namespace hone::c
