// Elementwise functions made of smaller ones. Any eval is an independent implementation that only
// tests use.
#include <cmath>

#include "ops/check.h"
#include "ops/contents.h"
#include "ops/eval.h"
#include "ops/gradients.h"
#include "ops/samples.h"

namespace hone {

namespace {

std::vector<Type> infer_real(const Call& c) { return infer_equal(c, 1, Accept::real); }
std::vector<Type> infer_numeric(const Call& c) { return infer_equal(c, 1, Accept::numeric); }

Value sigmoid_of(Value x) { return 1.0 / (ops::exp(-x) + 1.0); }

// Inside the bounds and at them that of x; outside that of the bound, as in PyTorch: if they are
// equal, low has none, and if low > high, all is that of high.
Values clip_grad(const Call& c, std::span<const Value>, std::span<const Value> dy) {
  const Value x = c.operands[0], low = c.operands[1], high = c.operands[2],
              none = constant_like(dy[0], 0);
  const Value is_inside = ops::bit_and(ops::le(low, x), ops::le(x, high)),
              is_low = ops::bit_and(ops::lt(x, low), ops::lt(low, high)),
              is_high = ops::bit_or(ops::lt(high, x), ops::lt(high, low));
  return {ops::select(is_inside, dy[0], none), ops::select(is_low, dy[0], none),
          ops::select(is_high, dy[0], none)};
}

Samples leaky_samples() {
  return {{{f32({2, 3})}, {{"alpha", 0.01}}},
          {{f16({7})}, {{"alpha", 0.2}}},
          {{f32({})}, {{"alpha", 0.0}}},
          {{f32({0})}, {{"alpha", 1.5}}}};
}

std::int64_t floor_remainder(DType t, std::int64_t a, std::int64_t b) {
  if (b == 0) return a;
  if (t == DType::u64)
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) % static_cast<std::uint64_t>(b));
  if (b == -1) return 0;
  std::int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

std::optional<Dim> clipped(std::span<const Dim> x) { return min(max(x[0], x[1]), x[2]); }

std::optional<Dim> floor_modulo(std::span<const Dim> x) {
  return x[1].low() > 0 ? std::optional(mod(x[0], x[1])) : std::nullopt;
}

// Where 1 / x overflows or is subnormal, in f64, f32 and f16.
constexpr double recip_edges[] = {0,        0x1p-1022, 0x1p-1024, 0x1p1022, 0x1p-126,
                                  0x1p-128, 0x1p126,   0x1p-14,   0x1p-16,  0x1p14};
constexpr double rsqrt_edges[] = {0,       0x1p-1074, 0x1p-1022,      0x1p-149, 0x1p-126,
                                  0x1p-24, 0x1p-14,   0x1.fffffep127, 65504};
// Where x * x overflows or is zero, in f64, f32 and f16.
constexpr double square_edges[] = {0x1p512, 0x1p-538, 0x1p64, 0x1p-75, 0x1p8, 0x1p-13};
// Where e^x overflows, is subnormal, is zero, or adds nothing to 1, in f64, f32 and f16.
constexpr double sigmoid_edges[] = {709.782712893384, 708.396418532264, 745.133219101941,
                                    36.7368005696771, 88.7228390520684, 87.3365447505531,
                                    103.972077083992, 16.6355323334,    11.0898664884610,
                                    17.3286795139986, 7.62461898616};
// Where erfc of x / sqrt(2) is subnormal or zero, or erf of it rounds to 1.
constexpr double gelu_edges[] = {38.5, 37.5, 14.2, 13.2, 12.9, 8.3, 5.54, 3.9, 2.8, 1, 0x1p-12};

}  // namespace

constinit const Op ops::recip = {
    .name = "recip",
    .doc = "1 / x.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .expand = [](const Call& c) -> Values { return {1.0 / c.operands[0]}; },
    .real = [](double x) { return 1 / x; },
    .eval = eval_real<ops::recip>,
    .cost = 8,
    .edges = recip_edges,
    .onnx = {"Reciprocal"},
    .samples = real_unary_samples,
    .low = 0.2,
    .high = 4,
};

constinit const Op ops::rsqrt = {
    .name = "rsqrt",
    .doc = "1 / sqrt(x).",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .expand = [](const Call& c) -> Values { return {1.0 / ops::sqrt(c.operands[0])}; },
    .real = [](double x) { return std::pow(x, -0.5); },
    .eval = eval_real<ops::rsqrt>,
    .cost = 16,
    .edges = rsqrt_edges,
    .samples = real_unary_samples,
    .low = 0.2,
    .high = 4,
};

constinit const Op ops::square = {
    .name = "square",
    .doc = "x * x.",
    .kind = OpKind::elementwise,
    .infer = infer_numeric,
    .expand = [](const Call& c) -> Values { return {c.operands[0] * c.operands[0]}; },
    .eval =
        [](const Evaluation& e) {
          return map_one(
              e, [](double x) { return std::pow(x, 2); },
              [](std::int64_t n) {
                auto u = static_cast<std::uint64_t>(n);
                return static_cast<std::int64_t>(u * u);
              });
        },
    .edges = square_edges,
    .samples = numeric_unary_samples,
};

constinit const Op ops::mod = {
    .name = "mod",
    .doc = "x - floor(x / y) * y: the sign of y. For integers x mod 0 is x; for floats NaN.",
    .kind = OpKind::elementwise,
    .infer = [](const Call& c) { return infer_equal(c, 2, Accept::numeric); },
    .grad = grads::remainder,
    .expand = [](const Call& c) -> Values {
      Value x = c.operands[0], y = c.operands[1], r = ops::rem(x, y);
      if (!is_float(x.dtype()) && !is_signed(x.dtype())) return {r};
      Value zero = constant_like(x, 0);
      Value apart = ops::bit_xor(ops::lt(r, zero), ops::lt(y, zero));
      Value wrong = ops::bit_and(ops::ne(r, zero), apart);
      return {ops::select(wrong, r + y, r)};
    },
    .eval =
        [](const Evaluation& e) {
          DType t = e.inputs[0]->dtype;
          return map_two(
              e,
              [](double a, double b) {
                double r = std::fmod(a, b);
                return r != 0 && std::signbit(r) != std::signbit(b) ? r + b : r;
              },
              [t](std::int64_t a, std::int64_t b) { return floor_remainder(t, a, b); });
        },
    .contents = [](const Call& c, const Type& t) { return contents_each(c, t, floor_modulo); },
    .cost = 20,
    .samples = numeric_binary_samples,
    .low = -9,
    .high = 9,
};

constinit const Op ops::relu = {
    .name = "relu",
    .doc = "max(x, 0).",
    .kind = OpKind::elementwise,
    .infer = infer_numeric,
    // 0 at 0, as the field has it; through the expansion it would be 1/2.
    .grad = [](const Call& c, std::span<const Value>, std::span<const Value> dy) -> Values {
      const Value zero = constant_like(dy[0], 0);
      return {ops::select(ops::le(c.operands[0], constant_like(c.operands[0], 0)), zero, dy[0])};
    },
    .expand = [](const Call& c) -> Values {
      return {ops::maximum(c.operands[0], constant_like(c.operands[0], 0))};
    },
    .eval =
        [](const Evaluation& e) {
          DType t = e.inputs[0]->dtype;
          return map_one(
              e, [](double x) { return x < 0 ? 0 : x; },
              [t](std::int64_t n) { return is_signed(t) && n < 0 ? 0 : n; });
        },
    .onnx = {"Relu"},
    .samples = numeric_unary_samples,
};

constinit const Op ops::leaky_relu = {
    .name = "leaky_relu",
    .doc = "x, but alpha * x where x is negative.",
    .kind = OpKind::elementwise,
    .infer = [](const Call& c) -> std::vector<Type> {
      attr<double>(c, "alpha");
      return infer_real(c);
    },
    // alpha at 0, as in PyTorch.
    .grad = [](const Call& c, std::span<const Value>, std::span<const Value> dy) -> Values {
      const Value zero = constant_like(c.operands[0], 0);
      return {ops::select(ops::lt(zero, c.operands[0]), dy[0], dy[0] * c.attrs.real("alpha"))};
    },
    .expand = [](const Call& c) -> Values {
      Value x = c.operands[0];
      return {ops::select(ops::lt(x, constant_like(x, 0)), x * c.attrs.real("alpha"), x)};
    },
    .eval =
        [](const Evaluation& e) {
          double alpha = Array::scalar(e.attrs.real("alpha"), e.inputs[0]->dtype).real(0);
          return map_reals(e, [=](double x) { return x < 0 ? alpha * x : x; });
        },
    .samples = leaky_samples,
};

constinit const Op ops::sigmoid = {
    .name = "sigmoid",
    .doc = "1 / (1 + exp(-x)).",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    // Through the expansion it would be 0 times infinity where exp(-x) overflows.
    .grad = [](const Call&, std::span<const Value> results, std::span<const Value> dy) -> Values {
      return {dy[0] * results[0] * (1.0 - results[0])};
    },
    .expand = [](const Call& c) -> Values { return {sigmoid_of(c.operands[0])}; },
    .real = [](double x) { return 1 / (1 + std::exp(-x)); },
    .eval = eval_real<ops::sigmoid>,
    .is_function = true,
    .cost = 16,
    .ulps = 4,
    .edges = sigmoid_edges,
    .onnx = {"Sigmoid"},
    .samples = real_unary_samples,
    .low = -8,
    .high = 8,
};

constinit const Op ops::silu = {
    .name = "silu",
    .doc = "x * sigmoid(x).",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .expand = [](const Call& c) -> Values { return {c.operands[0] * ops::sigmoid(c.operands[0])}; },
    .real = [](double x) { return x / (1 + std::exp(-x)); },
    .eval = eval_real<ops::silu>,
    .is_function = true,
    .cost = 17,
    .ulps = 4,
    .edges = sigmoid_edges,
    .samples = real_unary_samples,
    .low = -8,
    .high = 8,
};

constinit const Op ops::gelu = {
    .name = "gelu",
    .doc = "x * (1 + erf(x / sqrt(2))) / 2.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .expand = [](const Call& c) -> Values {
      Value x = c.operands[0];
      return {x * 0.5 * (ops::erf(x * M_SQRT1_2) + 1.0)};
    },
    .real = [](double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); },
    .eval = eval_real<ops::gelu>,
    .is_function = true,
    .cost = 16,
    .ulps = 4,
    .edges = gelu_edges,
    .onnx = {"Gelu", 20},
    .samples = real_unary_samples,
    .low = -4,
    .high = 4,
};

constinit const Op ops::gelu_tanh = {
    .name = "gelu_tanh",
    .doc = "x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2: another function than gelu.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .expand = [](const Call& c) -> Values {
      // (1 + tanh(z)) / 2 is sigmoid(2 z), which does not cancel.
      Value x = c.operands[0], inner = x + x * x * x * 0.044715;
      return {x * ops::sigmoid(inner * (2 * std::sqrt(2 / M_PI)))};
    },
    .real =
        [](double x) {
          double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * std::pow(x, 3));
          return x / (1 + std::exp(-2 * inner));
        },
    .eval = eval_real<ops::gelu_tanh>,
    .is_function = true,
    .cost = 16,
    .ulps = 4,
    .edges = gelu_edges,
    .samples = real_unary_samples,
    .low = -4,
    .high = 4,
};

constinit const Op ops::softplus = {
    .name = "softplus",
    .doc = "log(1 + exp(x)).",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = [](const Call& c, std::span<const Value>, std::span<const Value> dy) -> Values {
      return {dy[0] * ops::sigmoid(c.operands[0])};
    },
    // Never takes exp of a positive number, so it cannot overflow. The quotient restores the digits
    // lost in 1 + e (Kahan).
    .expand = [](const Call& c) -> Values {
      Value x = c.operands[0], e = ops::exp(-ops::abs(x)), u = e + 1.0;
      Value lost = (e - (u - 1.0)) / u;
      return {ops::maximum(x, constant_like(x, 0)) + (ops::log(u) + lost)};
    },
    .real = [](double x) { return x > 30 ? x : std::log1p(std::exp(x)); },
    .eval = eval_real<ops::softplus>,
    .is_function = true,
    .cost = 17,
    .ulps = 4,
    .edges = sigmoid_edges,
    .onnx = {"Softplus"},
    .samples = real_unary_samples,
    .low = -8,
    .high = 8,
};

constinit const Op ops::clip = {
    .name = "clip",
    .doc = "min(max(x, low), high) of three values of equal shape; where low > high it is high.",
    .kind = OpKind::elementwise,
    .infer = [](const Call& c) { return infer_equal(c, 3, Accept::numeric); },
    .grad = clip_grad,
    .expand = [](const Call& c) -> Values {
      return {ops::minimum(ops::maximum(c.operands[0], c.operands[1]), c.operands[2])};
    },
    .eval = [](const Evaluation& e) -> std::vector<Wide> {
      const Wide &low = *e.inputs[1], &high = *e.inputs[2];
      Wide y = *e.inputs[0];
      for (std::int64_t i = 0; i < y.count(); ++i) {
        join_element(Join::maximum, y, i, low, i);
        join_element(Join::minimum, y, i, high, i);
      }
      return one_result(std::move(y));
    },
    .contents = [](const Call& c, const Type& t) { return contents_each(c, t, clipped); },
    .samples =
        [] {
          return joined(samples_of(sample_real_types(), 3), samples_of(sample_integer_types(), 3));
        },
};

}  // namespace hone
