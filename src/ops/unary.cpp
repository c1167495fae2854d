// Elementwise functions of one value.
#include <cmath>

#include "ops/check.h"
#include "ops/contents.h"
#include "ops/eval.h"
#include "ops/gradients.h"
#include "ops/samples.h"

namespace hone {

namespace {

std::vector<Type> infer_real(const Call& c) { return infer_equal(c, 1, Accept::real); }
std::vector<Type> infer_one(const Call& c) { return infer_equal(c, 1, Accept::numeric); }

std::int64_t negated(std::int64_t n) {
  return static_cast<std::int64_t>(-static_cast<std::uint64_t>(n));
}

// Where the result overflows, is subnormal and is zero, in f32, f16 and f64.
constexpr double exp_edges[] = {88.7228390520684, 87.3365447505531, 103.972077083992,
                                11.0898664884610, 9.70406052783923, 17.3286795139986,
                                709.782712893384, 708.396418532264, 745.133219101941};
// Zero, the least subnormal and normal numbers of f64, f32 and f16, and 1, near which the logarithm
// is small.
constexpr double log_edges[] = {0, 0x1p-1074, 0x1p-1022, 0x1p-149, 0x1p-126, 0x1p-24, 0x1p-14, 1};
// The same numbers, and the largest ones.
constexpr double root_edges[] = {0,       0x1p-1074, 0x1p-1022,      0x1p-149, 0x1p-126,
                                 0x1p-24, 0x1p-14,   0x1.fffffep127, 65504};
// Where the result rounds to 1, in f64, f32, f16 and bf16; and where it is x.
constexpr double tanh_edges[] = {19.0615474653985, 9.01091334728, 4.50545667364, 3.12, 0.625,
                                 0x1p-12,          0x1p-27};
constexpr double erf_edges[] = {5.92158719576, 3.91920583, 2.7, 1.99, 1, 0.84375, 0x1p-12, 0x1p-28};
// Multiples of a quarter of pi, and numbers so far from zero that a quotient loses bits.
constexpr double turn_edges[] = {
    0.785398163397448, 1.5707963267949, 2.35619449019234, 3.14159265358979, 4.71238898038469,
    6.28318530717959,  0x1p13,          105615,           0x1p22,           1e10};
// Halves, the largest number below a half, and numbers where all floats become integers.
constexpr double whole_edges[] = {0.5,    1.5,    2.5,          0x1.fffffep-2, 1023.5, 2047.5,
                                  0x1p22, 0x1p23, 0x1p22 + 0.5, 0x1p51,        0x1p52};

}  // namespace

constinit const Op ops::neg = {
    .name = "neg",
    .doc = "-x. Integers wrap.",
    .kind = OpKind::elementwise,
    .infer = infer_one,
    .grad = [](const Call&, std::span<const Value>, std::span<const Value> dy) -> Values {
      return {-dy[0]};
    },
    .eval = [](const Evaluation& e) { return map_one(e, std::negate<double>(), negated); },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_each(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return Dim(0) - x[0]; });
        },
    .ulps = 0,
    .onnx = {"Neg"},
    .samples = numeric_unary_samples,
};

constinit const Op ops::abs = {
    .name = "abs",
    .doc = "The absolute value. The lowest signed integer is its own.",
    .kind = OpKind::elementwise,
    .infer = infer_one,
    .grad = [](const Call& c, std::span<const Value>, std::span<const Value> dy) -> Values {
      return {dy[0] * ops::sign(c.operands[0])};
    },
    .eval =
        [](const Evaluation& e) {
          bool sign = is_signed(e.inputs[0]->dtype);
          return map_one(
              e, [](double x) { return std::fabs(x); },
              [=](std::int64_t n) { return sign && n < 0 ? negated(n) : n; });
        },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_each(c, t, [](std::span<const Dim> x) -> std::optional<Dim> {
            return max(x[0], Dim(0) - x[0]);
          });
        },
    .ulps = 0,
    .onnx = {"Abs"},
    .samples = numeric_unary_samples,
};

constinit const Op ops::sign = {
    .name = "sign",
    .doc = "-1, 0 or 1; zeros keep their sign, NaN stays NaN.",
    .kind = OpKind::elementwise,
    .infer = infer_one,
    .grad = grads::zero,
    .eval =
        [](const Evaluation& e) {
          bool sign = is_signed(e.inputs[0]->dtype);
          return map_one(
              e, [](double x) { return x > 0   ? 1.0
                                       : x < 0 ? -1.0
                                               : x; },
              [=](std::int64_t n) -> std::int64_t { return n == 0          ? 0
                                                           : sign && n < 0 ? -1
                                                                           : 1; });
        },
    .contents = contents_by_value,
    .rising = true,
    .ulps = 0,
    .onnx = {"Sign", 9},
    .samples = numeric_unary_samples,
};

constinit const Op ops::exp = {
    .name = "exp",
    .doc = "e to the x.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = [](const Call&, std::span<const Value> y, std::span<const Value> dy) -> Values {
      return {dy[0] * y[0]};
    },
    .real = [](double x) { return std::exp(x); },
    .eval = eval_real<ops::exp>,
    .rising = true,
    .cost = 12,
    .ulps = 4,
    .edges = exp_edges,
    .onnx = {"Exp"},
    .samples = real_unary_samples,
};

constinit const Op ops::log = {
    .name = "log",
    .doc = "The natural logarithm; -infinity at 0, NaN below.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = [](const Call& c, std::span<const Value>, std::span<const Value> dy) -> Values {
      return {dy[0] / c.operands[0]};
    },
    .real = [](double x) { return std::log(x); },
    .eval = eval_real<ops::log>,
    .rising = true,
    .cost = 15,
    .ulps = 4,
    .edges = log_edges,
    .onnx = {"Log"},
    .samples = real_unary_samples,
    .low = 0.01,
    .high = 4,
};

constinit const Op ops::sqrt = {
    .name = "sqrt",
    .doc = "The square root; NaN below 0, -0 at -0.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = [](const Call&, std::span<const Value> y, std::span<const Value> dy) -> Values {
      return {dy[0] / (y[0] * 2.0)};
    },
    .real = [](double x) { return std::sqrt(x); },
    .eval = eval_real<ops::sqrt>,
    .rising = true,
    .cost = 8,
    .edges = root_edges,
    .onnx = {"Sqrt"},
    .samples = real_unary_samples,
    .low = 0,
    .high = 4,
};

constinit const Op ops::tanh = {
    .name = "tanh",
    .doc = "The hyperbolic tangent.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = [](const Call&, std::span<const Value> y, std::span<const Value> dy) -> Values {
      return {dy[0] * (1.0 - y[0] * y[0])};
    },
    .real = [](double x) { return std::tanh(x); },
    .eval = eval_real<ops::tanh>,
    .rising = true,
    .cost = 18,
    .ulps = 4,
    .edges = tanh_edges,
    .onnx = {"Tanh"},
    .samples = real_unary_samples,
    .low = -6,
    .high = 6,
};

constinit const Op ops::erf = {
    .name = "erf",
    .doc = "The error function.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = [](const Call& c, std::span<const Value>, std::span<const Value> dy) -> Values {
      const Value x = c.operands[0];
      return {dy[0] * (ops::exp(-(x * x)) * (2 * std::numbers::inv_sqrtpi))};
    },
    .real = [](double x) { return std::erf(x); },
    .eval = eval_real<ops::erf>,
    .rising = true,
    .cost = 20,
    .ulps = 4,
    .edges = erf_edges,
    .onnx = {"Erf", 9},
    .samples = real_unary_samples,
    .low = -4,
    .high = 4,
};

constinit const Op ops::sin = {
    .name = "sin",
    .doc = "The sine; x in radians.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = [](const Call& c, std::span<const Value>, std::span<const Value> dy) -> Values {
      return {dy[0] * ops::cos(c.operands[0])};
    },
    .real = [](double x) { return std::sin(x); },
    .eval = eval_real<ops::sin>,
    .cost = 25,
    .ulps = 4,
    .edges = turn_edges,
    .onnx = {"Sin", 7},
    .samples = real_unary_samples,
    .low = -10,
    .high = 10,
};

constinit const Op ops::cos = {
    .name = "cos",
    .doc = "The cosine; x in radians.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = [](const Call& c, std::span<const Value>, std::span<const Value> dy) -> Values {
      return {-(dy[0] * ops::sin(c.operands[0]))};
    },
    .real = [](double x) { return std::cos(x); },
    .eval = eval_real<ops::cos>,
    .cost = 25,
    .ulps = 4,
    .edges = turn_edges,
    .onnx = {"Cos", 7},
    .samples = real_unary_samples,
    .low = -10,
    .high = 10,
};

constinit const Op ops::floor = {
    .name = "floor",
    .doc = "The largest integral number not above x.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = grads::zero,
    .real = [](double x) { return std::floor(x); },
    .eval = eval_real<ops::floor>,
    .rising = true,
    .ulps = 0,
    .edges = whole_edges,
    .onnx = {"Floor"},
    .samples = real_unary_samples,
};

constinit const Op ops::ceil = {
    .name = "ceil",
    .doc = "The smallest integral number not below x.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = grads::zero,
    .real = [](double x) { return std::ceil(x); },
    .eval = eval_real<ops::ceil>,
    .rising = true,
    .ulps = 0,
    .edges = whole_edges,
    .onnx = {"Ceil"},
    .samples = real_unary_samples,
};

constinit const Op ops::round = {
    .name = "round",
    .doc = "The nearest integral number, ties to even.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = grads::zero,
    .real = [](double x) { return std::nearbyint(x); },
    .eval = eval_real<ops::round>,
    .rising = true,
    .ulps = 0,
    .edges = whole_edges,
    .onnx = {"Round", 11},
    .samples = real_unary_samples,
};

constinit const Op ops::trunc = {
    .name = "trunc",
    .doc = "x without its fraction, towards zero.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = grads::zero,
    .real = [](double x) { return std::trunc(x); },
    .eval = eval_real<ops::trunc>,
    .rising = true,
    .ulps = 0,
    .edges = whole_edges,
    .samples = real_unary_samples,
};

constinit const Op ops::replay = {
    .name = "replay",
    .doc =
        "x itself, computed again: `number` keeps it apart from the first time. No rule sees "
        "through it; it disappears after scheduling.",
    .kind = OpKind::other,
    .infer = [](const Call& c) -> std::vector<Type> {
      expect_operands(c, 1);
      integer_attr(c, "number", 0);
      return {c.type(0)};
    },
    .grad = [](const Call&, std::span<const Value>, std::span<const Value> dy) -> Values {
      return {dy[0]};
    },
    .eval = [](const Evaluation& e) -> std::vector<Wide> { return {*e.inputs[0]}; },
    .rising = true,
    .ulps = 0,
    .samples = []() -> Samples {
      return {{{f32({2, 3})}, {{"number", 1}}}, {{i64({2})}, {{"number", 2}}}};
    },
};

}  // namespace hone
