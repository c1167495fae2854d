// Error of the generated real functions against the C library in double precision.
#include "codegen/llvm/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

#include "base/sanitizer.h"
#include "jit.h"
#include "ops/ops.h"

namespace hone::llvm {

namespace {

struct Case {
  const char* name;
  Value (*build)(Value);
  double (*exact)(double);
  double limit;  // units in the last place
};

double exact_sigmoid(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
double exact_gelu(double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }
double exact_silu(double x) { return x * exact_sigmoid(x); }
double exact_softplus(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
double exact_gelu_tanh(double x) {
  return x * exact_sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
}
double exact_rsqrt(double x) { return 1 / std::sqrt(x); }
double exact_reciprocal(double x) { return 1 / x; }

// Limits for operations.
Value (*const exp)(Value) = real_function(ops::exp);
Value (*const log)(Value) = real_function(ops::log);
Value (*const tanh)(Value) = real_function(ops::tanh);
Value (*const erf)(Value) = real_function(ops::erf);
Value (*const sigmoid)(Value) = real_function(ops::sigmoid);
Value (*const silu)(Value) = real_function(ops::silu);
Value (*const softplus)(Value) = real_function(ops::softplus);
Value (*const gelu)(Value) = real_function(ops::gelu);
Value (*const gelu_tanh)(Value) = real_function(ops::gelu_tanh);

const Case cases[] = {
    {"exp", exp, std::exp, 1},
    {"expm1", expm1, std::expm1, 2},
    {"log", log, std::log, 2},
    {"log1p", log1p, std::log1p, 3},
    {"sigmoid", sigmoid, exact_sigmoid, 2.5},
    {"silu", silu, exact_silu, 3},
    {"softplus", softplus, exact_softplus, 2},
    {"tanh", tanh, std::tanh, 2.5},
    {"erf", erf, std::erf, 2.25},
    {"gelu", gelu, exact_gelu, 2},
    {"gelu_tanh", gelu_tanh, exact_gelu_tanh, 3},
    {"sin", sin, std::sin, 2},
    {"cos", cos, std::cos, 2},
    {"tan", tan, std::tan, 4},
    {"asin", asin, std::asin, 3},
    {"acos", acos, std::acos, 3},
    {"atan", atan, std::atan, 3},
    {"sinh", sinh, std::sinh, 3},
    {"cosh", cosh, std::cosh, 3},
    {"asinh", asinh, std::asinh, 4},
    {"acosh", acosh, std::acosh, 4},
    {"atanh", atanh, std::atanh, 4},
    {"rsqrt", rsqrt, exact_rsqrt, 1.5},
    {"reciprocal", reciprocal, exact_reciprocal, 0.5},
    {"sqrt", sqrt, std::sqrt, 0.5},
};

// Size of a unit in the last place of f32 at x.
double unit_at(double x) {
  int exponent = x == 0 || std::isinf(x) ? -126 : std::ilogb(x);
  return std::ldexp(1.0, std::max(exponent, -126) - 23);
}

// Error in units in the last place; infinite where NaN, infinities or the sign of zero disagree.
double error(float got, double exact) {
  float rounded = static_cast<float>(exact);
  if (std::isnan(rounded) || std::isnan(got))
    return std::isnan(rounded) && std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(got) && !std::isinf(rounded))  // the next number would have been 2^128
    return std::fabs(std::copysign(0x1p128, got) - exact) / unit_at(0x1p127);
  if (std::isinf(rounded))
    return std::isinf(got) && got == rounded  ? 0
           : std::fabs(exact) < 0x1.00001p128 ? std::fabs(got - exact) / unit_at(0x1p127)
                                              : INFINITY;
  if (exact == 0 && (got != 0 || std::signbit(got) != std::signbit(exact))) return INFINITY;
  return std::fabs(got - exact) / unit_at(exact);
}

constexpr bool is_instrumented = with_address_sanitizer || with_thread_sanitizer;

// Every 4096th bit pattern (fewer under a sanitizer), so every exponent of both signs; then dense
// ranges where functions bend; then the edges.
std::vector<float> inputs() {
  std::vector<float> out;
  const std::uint64_t step = is_instrumented ? 1 << 18 : 1 << 12;
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += step)
    out.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits + (bits >> 12) % 4096)));
  for (float range : {1.0f, 4.0f, 20.0f, 110.0f})
    for (int i = -50000; i <= 50000; i += is_instrumented ? 50 : 1)
      out.push_back(range * static_cast<float>(i) / 50000);
  for (float edge : {0.0f,      1.0f,          0.5f,      88.72283f,   88.72284f,  89.4f,
                     89.41598f, 89.41599f,     87.33654f, 103.97207f,  103.97208f, 17.5f,
                     9.02f,     3.93f,         0x1p40f,   INFINITY,    NAN,        0x1p-126f,
                     0x1p-149f, 3.4028235e38f, 1e9f,      0.70710677f, 1.4142135f, 0x1p-25f})
    for (float x : {edge, -edge, std::nextafter(edge, 0.0f), std::nextafter(edge, INFINITY),
                    -std::nextafter(edge, 0.0f), -std::nextafter(edge, INFINITY)})
      out.push_back(x);
  return out;
}

class Math : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Functions, Math, testing::ValuesIn(targets()));

std::vector<float> run_f32(const LoadedBinary& code, std::vector<float> in) {
  std::vector<float> out(in.size());
  run(code, {in.data(), out.data()}, static_cast<std::int64_t>(in.size()));
  return out;
}

}  // namespace

TEST_P(Math, ErrorOverAllExponents) {
  const std::vector<float> in = inputs();
  for (const Case& c : cases) {
    std::vector<float> out = run_f32(jit_map(GetParam(), DType::f32, DType::f32, c.build), in);
    double worst = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      double e = error(out[i], c.exact(in[i]));
      if (e > worst) worst = e, at = i;
    }
    std::printf("%-10s %-10s %6.3f ulp at %.9g (%.9g, exact %.9g)\n", GetParam().c_str(), c.name,
                worst, in[at], out[at], c.exact(in[at]));
    EXPECT_LE(worst, c.limit) << c.name << " of " << in[at];
  }
}

// The argument may be rounded once more, which changes exp(x) by |x| times that relative error.
// Just below an integral power of two the fraction and the polynomial add their own half units.
TEST_P(Math, ExpOfARoundedNumber) {
  const std::vector<float> in = inputs();
  std::vector<float> out = run_f32(jit_map(GetParam(), DType::f32, DType::f32, exp_of_rounded), in);
  double worst = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double exact = std::exp(static_cast<double>(in[i]));
    double e = error(out[i], exact);
    if (std::isfinite(e)) {
      const double allowed = std::fabs(in[i]) * 1.25 * 0x1p-24 * std::fabs(exact) / unit_at(exact);
      e = std::max(0.0, e - allowed);
    } else if (std::isinf(out[i]) != std::isinf(static_cast<float>(exact))) {
      e = std::fabs(in[i] / 88.722839 - 1) < 0x1p-23 ? 0 : e;  // where the result overflows
    }
    ASSERT_LE(e, 1.75) << in[i] << " gives " << out[i] << ", exact " << exact;
    worst = std::max(worst, e);
  }
  EXPECT_EQ(run_f32(jit_map(GetParam(), DType::f32, DType::f32, exp_of_rounded),
                    {0.0f, -0.0f, INFINITY, -INFINITY, -3.4e38f, 3.4e38f}),
            (std::vector<float>{1, 1, INFINITY, 0, 0, INFINITY}));
  std::printf("%-10s exp_of_rounded %6.3f ulp\n", GetParam().c_str(), worst);
}

TEST_P(Math, PowOnAGridOfSpecialAndRandomNumbers) {
  std::vector<float> base, exponent;
  const float special[] = {
      0,     -0.0f, 1,    -1,    2,       -2,       0.5f,      -0.5f,    3,           -3,
      1e-3f, 1e3f,  2.5f, -2.5f, 1e38f,   1e-38f,   0x1p-149f, INFINITY, -INFINITY,   NAN,
      127,   128,   -149, -150,  0x1p24f, 16777215, -7,        1 / 3.0f, 0.99999994f, 1.0000001f};
  for (float x : special)
    for (float y : special) base.push_back(x), exponent.push_back(y);
  std::mt19937 rng(5);
  std::uniform_real_distribution<float> wide(-150, 150), near(-3, 3);
  for (int i = 0; i < 200000; ++i) {
    base.push_back(std::exp2(i % 2 ? near(rng) : wide(rng)));
    exponent.push_back(i % 3 ? near(rng) : wide(rng));
  }
  std::vector<float> out(base.size());
  LoadedBinary code = jit_kernel(GetParam(), 3, [](Module& m, const KernelArguments& k) {
    m.loop(m.index(0), k.size(0), 8, [&](Value i) {
      Value mask = m.tail_mask(k.size(0) - i, 8);
      auto at = [&](int b) {
        return offset(k.buffers[static_cast<std::size_t>(b)], DType::f32, i);
      };
      Value y = pow(load_masked(DType::f32, at(0), mask), load_masked(DType::f32, at(1), mask));
      store_masked(DType::f32, at(2), y, mask);
    });
  });
  run(code, {base.data(), exponent.data(), out.data()}, static_cast<std::int64_t>(base.size()));
  double worst = 0;
  for (std::size_t i = 0; i < base.size(); ++i) {
    double e = error(out[i], std::pow(static_cast<double>(base[i]), exponent[i]));
    ASSERT_LE(e, 1) << base[i] << " to the " << exponent[i] << " is " << out[i];
    worst = std::max(worst, e);
  }
  std::printf("%-10s pow        %6.3f ulp\n", GetParam().c_str(), worst);
}

TEST_P(Math, EveryLaneCountGivesTheSameBits) {
  std::vector<float> in;
  for (int i = 0; i < 512; ++i)
    in.push_back(std::ldexp(static_cast<float>(i % 37 - 18), i % 9 - 4));
  for (Value (*f)(Value) :
       {exp, log1p, tanh, sigmoid, silu, softplus, erf, gelu, gelu_tanh, sin, asinh}) {
    std::vector<float> expected = run_f32(jit_map(GetParam(), DType::f32, DType::f32, f, 16), in);
    for (int lanes : {1, 2, 4, 8, 32}) {
      std::vector<float> out = run_f32(jit_map(GetParam(), DType::f32, DType::f32, f, lanes), in);
      EXPECT_EQ(std::memcmp(out.data(), expected.data(), 4 * in.size()), 0) << lanes << " lanes";
    }
  }
}

// Functions test all lanes at once for values out of the fast range.
TEST_P(Math, NaNInOneLaneHidesNoOther) {
  const float near[] = {NAN, -NAN, std::bit_cast<float>(0x7fa00000u), 1};
  const float far[] = {-3e38f, 3e38f, -INFINITY, -20, 20};
  std::mt19937 rng(3);
  std::vector<float> in(1 << 14);
  for (float& x : in) x = rng() % 32 ? near[rng() % 4] : far[rng() % 5];
  for (const Case& c : cases) {
    const std::vector<float> out =
        run_f32(jit_map(GetParam(), DType::f32, DType::f32, c.build, 32), in);
    for (std::size_t i = 0; i < in.size(); ++i)
      ASSERT_LE(error(out[i], c.exact(in[i])), c.limit)
          << c.name << " of " << in[i] << " is " << out[i];
  }
}

TEST_P(Math, DoublesComeFromTheCLibrary) {
  std::vector<double> in = {0.25, -0.5, 0.75, 0.0, -0.0, 1, 1e-300, 0.999, NAN};
  for (const Case& c : cases) {
    std::vector<double> x = in, out(in.size());
    run(jit_map(GetParam(), DType::f64, DType::f64, c.build, 4), {x.data(), out.data()},
        static_cast<std::int64_t>(in.size()));
    for (std::size_t i = 0; i < in.size(); ++i) {
      double exact = c.exact(in[i]);
      bool agrees = std::isnan(exact)
                        ? std::isnan(out[i])
                        : out[i] == exact || std::fabs(out[i] - exact) <= 1e-15 * std::fabs(exact);
      EXPECT_TRUE(agrees) << c.name << " of " << in[i] << ": " << out[i] << ", not " << exact;
    }
  }
}

TEST_P(Math, SignAndIntegers) {
  std::vector<float> in = {3, -0.5f, 0.0f, -0.0f, INFINITY, -INFINITY};
  std::vector<float> out = run_f32(jit_map(GetParam(), DType::f32, DType::f32, sign), in);
  EXPECT_EQ(out, (std::vector<float>{1, -1, 0, 0, 1, -1}));
  EXPECT_TRUE(std::isnan(run_f32(jit_map(GetParam(), DType::f32, DType::f32, sign), {NAN})[0]));
  std::vector<std::int32_t> whole = {7, -7, 0}, signs(3);
  run(jit_map(GetParam(), DType::i32, DType::i32, sign), {whole.data(), signs.data()}, 3);
  EXPECT_EQ(signs, (std::vector<std::int32_t>{1, -1, 0}));
}

TEST_P(Math, Rounding) {
  std::vector<float> in = {2.5f, 3.5f, -2.5f, 0.49999997f, -0.3f, 1e20f, INFINITY};
  auto with = [&](Value (*f)(Value)) {
    return run_f32(jit_map(GetParam(), DType::f32, DType::f32, f), in);
  };
  EXPECT_EQ(with(round_even), (std::vector<float>{2, 4, -2, 0, 0, 1e20f, INFINITY}));
  EXPECT_EQ(with(floor), (std::vector<float>{2, 3, -3, 0, -1, 1e20f, INFINITY}));
  EXPECT_EQ(with(ceil), (std::vector<float>{3, 4, -2, 1, 0, 1e20f, INFINITY}));
  EXPECT_EQ(with(trunc), (std::vector<float>{2, 3, -2, 0, 0, 1e20f, INFINITY}));
}

}  // namespace hone::llvm
