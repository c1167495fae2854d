// Elementwise arithmetic on two values of equal shape and dtype.
#include <cmath>
#include <limits>

#include "ops/check.h"
#include "ops/contents.h"
#include "ops/eval.h"
#include "ops/gradients.h"
#include "ops/samples.h"

namespace hone {

namespace {

std::vector<Type> infer_two(const Call& c) { return infer_equal(c, 2, Accept::numeric); }

template <class F>
auto modular(F f) {
  return [f](std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(
        f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  };
}

bool is_u64(const Evaluation& e) { return e.inputs[0]->dtype == DType::u64; }

std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) return -1;
  if (b == -1) return static_cast<std::int64_t>(-static_cast<std::uint64_t>(a));
  return a / b;
}
std::int64_t remainder(std::int64_t a, std::int64_t b) { return b == 0 ? a : b == -1 ? 0 : a % b; }

std::int64_t integer_power(DType t, std::int64_t x, std::int64_t n) {
  if (is_signed(t) && n < 0) return x == 0 ? -1 : x == 1 ? 1 : x == -1 ? (n % 2 == 0 ? 1 : -1) : 0;
  std::uint64_t result = 1, base = static_cast<std::uint64_t>(x);
  for (auto k = static_cast<std::uint64_t>(n); k != 0; k >>= 1, base *= base)
    if (k & 1) result *= base;
  return static_cast<std::int64_t>(result);
}

// Sizes use floor division; that equals truncation only where the signs are known.
std::optional<Dim> divided(std::span<const Dim> x) {
  const Dim &a = x[0], &b = x[1];
  if (b.low() <= 0) return std::nullopt;
  if (a.low() >= 0) return floor_div(a, b);
  if (a.high() <= 0) return Dim(0) - floor_div(Dim(0) - a, b);
  if (a.is_number() && b.is_number()) return a.number() / b.number();
  return std::nullopt;
}

// Distributes d to the elements of x that win against y, and equally where they tie.
Value share(Value d, Value wins, Value ties) {
  const Value zero = constant_like(d, 0);
  return ops::select(wins, d, ops::select(ties, d * 0.5, zero));
}

std::optional<Dims> contents_of_each(const Call& c, const Type& t, DimRule rule) {
  return contents_each(c, t, rule);
}

}  // namespace

constinit const Op ops::add = {
    .name = "add",
    .doc = "x + y. Equal shapes and dtypes; integers wrap.",
    .kind = OpKind::elementwise,
    .infer = infer_two,
    .grad = [](const Call&, std::span<const Value>, std::span<const Value> dy) -> Values {
      return {dy[0], dy[0]};
    },
    .eval =
        [](const Evaluation& e) {
          return map_two(e, std::plus<double>(), modular(std::plus<std::uint64_t>()));
        },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_of_each(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return x[0] + x[1]; });
        },
    .commutative = true,
    .rising = true,
    .onnx = {"Add", 1, 2},
    .samples = numeric_binary_samples,
};

constinit const Op ops::sub = {
    .name = "sub",
    .doc = "x - y. Equal shapes and dtypes; integers wrap.",
    .kind = OpKind::elementwise,
    .infer = infer_two,
    .grad = [](const Call&, std::span<const Value>, std::span<const Value> dy) -> Values {
      return {dy[0], -dy[0]};
    },
    .eval =
        [](const Evaluation& e) {
          return map_two(e, std::minus<double>(), modular(std::minus<std::uint64_t>()));
        },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_of_each(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return x[0] - x[1]; });
        },
    .onnx = {"Sub", 1, 2},
    .samples = numeric_binary_samples,
};

constinit const Op ops::mul = {
    .name = "mul",
    .doc = "x * y. Equal shapes and dtypes; integers wrap.",
    .kind = OpKind::elementwise,
    .infer = infer_two,
    .grad = [](const Call& c, std::span<const Value>, std::span<const Value> dy) -> Values {
      return {dy[0] * c.operands[1], dy[0] * c.operands[0]};
    },
    .eval =
        [](const Evaluation& e) {
          return map_two(e, std::multiplies<double>(), modular(std::multiplies<std::uint64_t>()));
        },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_of_each(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return x[0] * x[1]; });
        },
    .commutative = true,
    .onnx = {"Mul", 1, 2},
    .samples = numeric_binary_samples,
};

constinit const Op ops::div = {
    .name = "div",
    .doc = "x / y. Integers truncate towards zero; x / 0 is all ones, lowest / -1 is lowest.",
    .kind = OpKind::elementwise,
    .infer = infer_two,
    .grad = [](const Call& c, std::span<const Value> y, std::span<const Value> dy) -> Values {
      const Value part = dy[0] / c.operands[1];
      return {part, -(part * y[0])};
    },
    .eval =
        [](const Evaluation& e) {
          if (is_u64(e))
            return map_two(e, std::divides<double>(), modular([](std::uint64_t a, std::uint64_t b) {
                             return b == 0 ? ~std::uint64_t{0} : a / b;
                           }));
          return map_two(e, std::divides<double>(), quotient);
        },
    .contents = [](const Call& c, const Type& t) { return contents_of_each(c, t, divided); },
    .cost = 8,
    .ulps = 2,
    .onnx = {"Div", 1, 2},
    .samples = numeric_binary_samples,
};

constinit const Op ops::rem = {
    .name = "rem",
    .doc = "x - trunc(x / y) * y: the sign of x. For integers x rem 0 is x; for floats NaN.",
    .kind = OpKind::elementwise,
    .infer = infer_two,
    .grad = grads::remainder,
    .eval =
        [](const Evaluation& e) {
          auto real = [](double a, double b) { return std::fmod(a, b); };
          if (is_u64(e))
            return map_two(e, real, modular([](std::uint64_t a, std::uint64_t b) {
                             return b == 0 ? a : a % b;
                           }));
          return map_two(e, real, remainder);
        },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_of_each(c, t, [](std::span<const Dim> x) -> std::optional<Dim> {
            std::optional<Dim> q = divided(x);
            if (q && x[0].low() >= 0) return hone::mod(x[0], x[1]);
            return q ? std::optional(x[0] - *q * x[1]) : std::nullopt;
          });
        },
    .cost = 12,
    .samples = numeric_binary_samples,
};

namespace {
// Exponents that kernels handle specially, and bases with exact powers.
constexpr double pow_edges[] = {0, 1, 2, 3, 0.5, 1.5, 0x1p-149, 0x1p-24, 127, 128, 149};
}  // namespace

constinit const Op ops::pow = {
    .name = "pow",
    .doc = "x to the y, as C's pow. Integers wrap; a negative integer power is 1 / x^-y truncated.",
    .kind = OpKind::elementwise,
    .infer = infer_two,
    .grad = [](const Call& c, std::span<const Value> y, std::span<const Value> dy) -> Values {
      // Derivatives of x^n: n x^(n-1), and 0 where n is 0 for any x; x^n log x, and 0 where x is 0.
      const Value x = c.operands[0], n = c.operands[1], zero = constant_like(x, 0);
      const Value by_x = ops::select(ops::eq(n, zero), zero, n * ops::pow(x, n - 1.0)),
                  by_n = ops::select(ops::eq(x, zero), zero, y[0] * ops::log(x));
      return {dy[0] * by_x, dy[0] * by_n};
    },
    .eval =
        [](const Evaluation& e) {
          DType t = e.inputs[0]->dtype;
          return map_two(
              e, [](double a, double b) { return std::pow(a, b); },
              [t](std::int64_t a, std::int64_t b) { return integer_power(t, a, b); });
        },
    .contents = contents_by_value,
    .cost = 40,
    .ulps = 4,
    .edges = pow_edges,
    .onnx = {"Pow", 1, 2},
    .samples = numeric_binary_samples,
    .low = 0.1,
    .high = 3,
};

constinit const Op ops::maximum = {
    .name = "maximum",
    .doc = "The larger of x and y; NaN if either is. Of -0 and +0 either.",
    .kind = OpKind::elementwise,
    .infer = infer_two,
    .grad = [](const Call& c, std::span<const Value>, std::span<const Value> dy) -> Values {
      const Value a = c.operands[0], b = c.operands[1], ties = ops::eq(a, b);
      return {share(dy[0], ops::lt(b, a), ties), share(dy[0], ops::lt(a, b), ties)};
    },
    .eval =
        [](const Evaluation& e) {
          DType t = e.inputs[0]->dtype;
          return map_two(
              e, [](double a, double b) { return join(Join::maximum, a, b); },
              [t](std::int64_t a, std::int64_t b) { return join(Join::maximum, t, a, b); });
        },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_of_each(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return max(x[0], x[1]); });
        },
    .commutative = true,
    .ulps = 0,
    .onnx = {"Max", 1, 2},
    .samples = numeric_binary_samples,
};

constinit const Op ops::minimum = {
    .name = "minimum",
    .doc = "The smaller of x and y; NaN if either is. Of -0 and +0 either.",
    .kind = OpKind::elementwise,
    .infer = infer_two,
    .grad = [](const Call& c, std::span<const Value>, std::span<const Value> dy) -> Values {
      const Value a = c.operands[0], b = c.operands[1], ties = ops::eq(a, b);
      return {share(dy[0], ops::lt(a, b), ties), share(dy[0], ops::lt(b, a), ties)};
    },
    .eval =
        [](const Evaluation& e) {
          DType t = e.inputs[0]->dtype;
          return map_two(
              e, [](double a, double b) { return join(Join::minimum, a, b); },
              [t](std::int64_t a, std::int64_t b) { return join(Join::minimum, t, a, b); });
        },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_of_each(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return min(x[0], x[1]); });
        },
    .commutative = true,
    .ulps = 0,
    .onnx = {"Min", 1, 2},
    .samples = numeric_binary_samples,
};

}  // namespace hone
