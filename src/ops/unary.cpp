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

}  // namespace

constinit const Op ops::neg = {
    .name = "neg",
    .doc = "-x. Integers wrap.",
    .kind = OpKind::elementwise,
    .infer = infer_one,
    .grad = grads::neg,
    .eval = [](const Evaluation& e) { return map_one(e, std::negate<double>(), negated); },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_each(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return Dim(0) - x[0]; });
        },
    .samples = numeric_unary_samples,
};

constinit const Op ops::abs = {
    .name = "abs",
    .doc = "The absolute value. The lowest signed integer is its own.",
    .kind = OpKind::elementwise,
    .infer = infer_one,
    .grad = grads::abs,
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
    .samples = numeric_unary_samples,
};

constinit const Op ops::exp = {
    .name = "exp",
    .doc = "e to the x.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = grads::exp,
    .eval = [](const Evaluation& e) { return map_reals(e, [](double x) { return std::exp(x); }); },
    .samples = real_unary_samples,
};

constinit const Op ops::log = {
    .name = "log",
    .doc = "The natural logarithm; -infinity at 0, NaN below.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = grads::log,
    .eval = [](const Evaluation& e) { return map_reals(e, [](double x) { return std::log(x); }); },
    .samples = real_unary_samples,
    .low = 0.01,
    .high = 4,
};

constinit const Op ops::sqrt = {
    .name = "sqrt",
    .doc = "The square root; NaN below 0, -0 at -0.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = grads::sqrt,
    .eval = [](const Evaluation& e) { return map_reals(e, [](double x) { return std::sqrt(x); }); },
    .samples = real_unary_samples,
    .low = 0,
    .high = 4,
};

constinit const Op ops::tanh = {
    .name = "tanh",
    .doc = "The hyperbolic tangent.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = grads::tanh,
    .eval = [](const Evaluation& e) { return map_reals(e, [](double x) { return std::tanh(x); }); },
    .samples = real_unary_samples,
    .low = -6,
    .high = 6,
};

constinit const Op ops::erf = {
    .name = "erf",
    .doc = "The error function.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = grads::erf,
    .eval = [](const Evaluation& e) { return map_reals(e, [](double x) { return std::erf(x); }); },
    .samples = real_unary_samples,
    .low = -4,
    .high = 4,
};

constinit const Op ops::sin = {
    .name = "sin",
    .doc = "The sine; x in radians.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = grads::sin,
    .eval = [](const Evaluation& e) { return map_reals(e, [](double x) { return std::sin(x); }); },
    .samples = real_unary_samples,
    .low = -10,
    .high = 10,
};

constinit const Op ops::cos = {
    .name = "cos",
    .doc = "The cosine; x in radians.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = grads::cos,
    .eval = [](const Evaluation& e) { return map_reals(e, [](double x) { return std::cos(x); }); },
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
    .eval =
        [](const Evaluation& e) { return map_reals(e, [](double x) { return std::floor(x); }); },
    .samples = real_unary_samples,
};

constinit const Op ops::ceil = {
    .name = "ceil",
    .doc = "The smallest integral number not below x.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = grads::zero,
    .eval = [](const Evaluation& e) { return map_reals(e, [](double x) { return std::ceil(x); }); },
    .samples = real_unary_samples,
};

constinit const Op ops::round = {
    .name = "round",
    .doc = "The nearest integral number, ties to even.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = grads::zero,
    .eval =
        [](const Evaluation& e) {
          return map_reals(e, [](double x) { return std::nearbyint(x); });
        },
    .samples = real_unary_samples,
};

constinit const Op ops::trunc = {
    .name = "trunc",
    .doc = "x without its fraction, towards zero.",
    .kind = OpKind::elementwise,
    .infer = infer_real,
    .grad = grads::zero,
    .eval =
        [](const Evaluation& e) { return map_reals(e, [](double x) { return std::trunc(x); }); },
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
    .grad = grads::replay,
    .eval = [](const Evaluation& e) -> std::vector<Wide> { return {*e.inputs[0]}; },
    .samples = []() -> Samples {
      return {{{f32({2, 3})}, {{"number", 1}}}, {{i64({2})}, {{"number", 2}}}};
    },
};

}  // namespace hone
