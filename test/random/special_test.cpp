// NaN and infinities of functions that are too large to evaluate completely.
#include "verify/model/special.h"

#include <gtest/gtest.h>

#include "ops/common.h"
#include "verify/sample.h"

namespace hone::fuzz {
namespace {

Function product(Value (*after)(Value p), std::int64_t layers = 1) {
  Function f;
  Value p = f.add_param(f32({64, 256}), "x");
  for (std::int64_t i = 0; i < layers; ++i) {
    const Type weights = f32({256, 256});
    p = ops::matmul(p, constant(f.graph(), sample_array(weights, {}, Fill::random, 7)));
  }
  f.add_result(after(p), "y");
  return f;
}

// The message for a plan that computes `wrong` where `right` is expected.
std::string message_for(Value (*right)(Value p), Value (*wrong)(Value p)) {
  const std::vector<Array> inputs = {sample_array(f32({64, 256}), {}, Fill::rare, 1)};
  const std::vector<Array> got = evaluate(product(wrong), inputs);
  return wrong_special(product(right), inputs, got);
}

Value itself(Value p) { return p; }
Value zero(Value p) { return constant_like(p, 0); }
Value difference(Value p) { return p - p; }
Value behind_relu(Value p) { return ops::relu(p) - ops::relu(p); }
Value quotient(Value p) { return p / p; }

TEST(Special, WhatRulesForgetOfNaNAndInfinity) {
  EXPECT_NE(message_for(difference, zero), "");
  EXPECT_NE(message_for(behind_relu, zero), "");
  EXPECT_NE(message_for(quotient, [](Value p) { return constant_like(p, 1); }), "");
  EXPECT_NE(message_for([](Value p) { return ops::relu(p) + behind_relu(p); },
                        [](Value p) { return ops::relu(p); }),
            "");
}

TEST(Special, RightResultsPass) {
  for (Value (*f)(Value) : {itself, difference, behind_relu, quotient})
    EXPECT_EQ(message_for(f, f), "");
}

// The mean of what is left of a row without its mean is nothing but rounding, of either sign, and
// its root is a number or NaN.
TEST(Special, RoundingMayDecideWhatIsNaN) {
  const auto root = [](double sign) {
    Function f;
    const Value x = f.add_param(f32({8, 16}), "x");
    const auto mean = [](Value v) { return reduce_axes(ops::reduce_sum, v, {1}, true) * 0.0625; };
    f.add_result(ops::sqrt(mean(x - broadcast_to(mean(x), x.shape())) * sign), "y");
    return f;
  };
  const std::vector<Array> inputs = {sample_array(f32({8, 16}), {}, Fill::rare, 1)};
  const std::vector<Array> positive = evaluate(root(1), inputs),
                           negative = evaluate(root(-1), inputs);
  EXPECT_EQ(wrong_special(root(1), inputs, positive), "");
  EXPECT_EQ(wrong_special(root(1), inputs, negative), "");
  // What the sum of magnitudes gives is no NaN in any rounding.
  Function sure;
  const Value x = sure.add_param(f32({8, 16}), "x");
  sure.add_result(ops::sqrt(reduce_axes(ops::reduce_sum, ops::abs(x), {1}, true)), "y");
  EXPECT_NE(wrong_special(sure, inputs, negative), "");
}

// Computing even one element is too much work here, so nothing is compared and nothing reported.
TEST(Special, ADeepFunctionIsNotJudged) {
  const Function deep = product(difference, 3);
  const std::vector<Array> inputs = {sample_array(f32({64, 256}), {}, Fill::rare, 1)};
  EXPECT_EQ(wrong_special(deep, inputs, evaluate(product(zero, 3), inputs)), "");
}

}  // namespace
}  // namespace hone::fuzz
