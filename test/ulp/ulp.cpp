#include "test/ulp/ulp.h"

#include <cmath>
#include <cstring>

#include "backend/devices/devices.h"
#include "compile/compile.h"
#include "runtime/session.h"

namespace hone::ulp {

namespace {

constexpr double leaky_alpha = 0.25;
constexpr std::int64_t chunk = 1 << 16;

double sigmoid(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
// Each formula is used where it is accurate to a few double ulps.
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
double gelu(double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); }
double gelu_tanh(double x) {
  // (1 + tanh(t)) / 2 is sigmoid(2 t), which does not cancel.
  return x * sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
}
double signum(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
double relu(double x) { return x < 0 ? 0 : x; }
double leaky(double x) { return x < 0 ? leaky_alpha * x : x; }

// The format of a dtype's numbers.
struct Format {
  int fraction;     // bits behind the point
  int least, most;  // exponents of normal numbers
};
Format format_of(DType t) {
  if (t == DType::f16) return {10, -14, 15};
  return {t == DType::bf16 ? 7 : 23, -126, 127};
}

double unit_at(double x, const Format& f) {
  const int exponent = x == 0 ? f.least : std::clamp(std::ilogb(x), f.least, f.most);
  return std::ldexp(1.0, exponent - f.fraction);
}

// An infinity counts as the number that would follow the largest.
double error(double got, double exact, const Format& f) {
  if (std::isnan(got) || std::isnan(exact))
    return std::isnan(got) && std::isnan(exact) ? 0 : INFINITY;
  const double end = std::ldexp(1.0, f.most + 1);
  if (std::isinf(exact) && got != exact) return INFINITY;
  if (std::isinf(got) && std::fabs(exact) >= end)
    return got == std::copysign(INFINITY, exact) ? 0 : INFINITY;
  const double shown = std::isinf(got) ? std::copysign(end, got) : got;
  return std::isinf(exact) ? 0 : std::fabs(shown - exact) / unit_at(exact, f);
}

Function function_of(const Unary& u, DType t) {
  Function f;
  const Value x = f.add_param(Type(t, {chunk}), "x");
  f.add_result(f.graph().intern(*u.op, Values{x}, u.attrs), "y");
  return f;
}

// The numbers with the bit patterns first, first + step, ...
Array inputs(DType t, std::uint64_t first, std::uint64_t step) {
  Array a = Array::zeros(t, {chunk});
  const std::size_t size = static_cast<std::size_t>(byte_size(t));
  for (std::size_t i = 0; i < chunk; ++i) {
    const auto bits = static_cast<std::uint32_t>(first + i * step);
    std::memcpy(a.writable_bytes().data() + i * size, &bits, size);
  }
  return a;
}

}  // namespace

const std::vector<Unary>& unaries() {
  static const std::vector<Unary> all = {
      {&ops::neg, [](double x) { return -x; }, 0.5},
      {&ops::abs, [](double x) { return std::fabs(x); }, 0.5},
      {&ops::sign, signum, 0.5},
      {&ops::floor, [](double x) { return std::floor(x); }, 0.5},
      {&ops::ceil, [](double x) { return std::ceil(x); }, 0.5},
      {&ops::round, [](double x) { return std::nearbyint(x); }, 0.5},
      {&ops::trunc, [](double x) { return std::trunc(x); }, 0.5},
      {&ops::sqrt, [](double x) { return std::sqrt(x); }, 0.5},
      {&ops::recip, [](double x) { return 1 / x; }, 0.5},
      {&ops::square, [](double x) { return x * x; }, 0.5},
      {&ops::relu, relu, 0.5},
      {&ops::leaky_relu, leaky, 0.5, {{"alpha", leaky_alpha}}},
      {&ops::rsqrt, [](double x) { return 1 / std::sqrt(x); }, 4},
      {&ops::exp, [](double x) { return std::exp(x); }, 4},
      {&ops::log, [](double x) { return std::log(x); }, 4},
      {&ops::tanh, [](double x) { return std::tanh(x); }, 4},
      {&ops::erf, [](double x) { return std::erf(x); }, 4},
      {&ops::sin, [](double x) { return std::sin(x); }, 4},
      {&ops::cos, [](double x) { return std::cos(x); }, 4},
      {&ops::sigmoid, sigmoid, 4},
      {&ops::silu, [](double x) { return x * sigmoid(x); }, 4},
      {&ops::softplus, softplus, 4},
      {&ops::gelu, gelu, 4},
      {&ops::gelu_tanh, gelu_tanh, 4},
  };
  return all;
}

Error measure(const Unary& u, DType t, std::uint64_t step, const std::string& target) {
  CompileOptions options;
  options.strategy = "cpu";
  options.targets = {target};
  options.verification = Verification::none;
  options.cache = false;
  options.threads = 1;
  const Source source{std::string(u.op->name), {{{}, function_of(u, t)}}, {}};
  Session session(
      Executable::load(std::make_shared<const Plan>(compile(source, options)), open_device("cpu")),
      {.threads = 1});
  const Format format = format_of(t);
  const std::uint64_t patterns = std::uint64_t{1} << (8 * byte_size(t));
  if (t != DType::f32) step = 1;
  Error out;
  for (std::uint64_t first = 0; first < patterns; first += chunk * step) {
    const Array x = inputs(t, first, step);
    const Array y = session.run(std::span(&x, 1))[0];
    for (std::int64_t i = 0; i < chunk; ++i) {
      const double at = x.real(i), got = y.real(i), exact = u.exact(at);
      const double e = error(got, exact, format);
      if (e > out.worst) out = {e, at, got, exact};
    }
  }
  return out;
}

}  // namespace hone::ulp
