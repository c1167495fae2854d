#include <cmath>

#include "ops/check.h"
#include "ops/common.h"
#include "ops/eval.h"
#include "ops/samples.h"
#include "test/extending/extending.h"

namespace hone::extending {

// Where |x| is nothing beside 1, and 1 beside |x|, in f64, f32 and f16.
constexpr double softsign_edges[] = {0x1p-53, 0x1p-24, 0x1p-11, 0x1p53, 0x1p24, 0x1p11};

constinit const Op softsign = {
    .name = "softsign",
    .doc = "x / (1 + |x|).",
    .kind = OpKind::elementwise,
    .infer = [](const Call& c) { return infer_equal(c, 1, Accept::real); },
    .expand = [](const Call& c) -> Values {
      const Value x = c.operands[0];
      return {x / (ops::abs(x) + 1.0)};
    },
    .real = [](double x) { return x / (1 + std::fabs(x)); },
    .eval = eval_real<softsign>,
    .cost = 10,
    .ulps = 2,
    .edges = softsign_edges,
    .onnx = {"Softsign"},
    .samples = real_unary_samples,
};

}  // namespace hone::extending
