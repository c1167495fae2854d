// Which results that the first rule refuses are explained by rounding, and which are not.
#include "verify/model/explanation.h"

#include <gtest/gtest.h>

#include "ops/common.h"

namespace hone::fuzz {
namespace {

// Whether `got` is explained when x is 0.3.
bool is_explained(Value (*make)(Value x), const std::vector<float>& got) {
  Function f;
  Value x = f.add_param(f32({1}), "x");
  f.add_result(make(x), "y");
  const std::vector<Array> inputs = {
      Array::of(DType::f32, {1}, std::span<const float>(std::vector<float>{0.3f}))};
  Evaluator evaluator(f);
  Expected expected(evaluator, inputs, Mode::stepwise);
  const Array result = Array::of(DType::f32, {std::ssize(got)}, std::span<const float>(got));
  return Explanation(f, inputs, expected).explains(0, result);
}

// Six equal numbers minus their mean, multiplied together. Each difference is only rounding error,
// because the mean multiplies by a rounded 1/6.
Value product_of_noise(Value x) {
  Value six = broadcast_to(x, {6});
  Value mean = broadcast_to(reduce_axes(ops::reduce_sum, six, {0}) * (1.0 / 6), {6});
  return reduce_axes(ops::reduce_prod, six - mean, {0}, true);
}

// In units in the last place of x: perturbations reach about 2^11, the enclosure reaches 1.9e6.
Value scaled_noise(Value x) { return product_of_noise(x) * 0x1p75 * 0x1p75; }

TEST(Explanation, NoiseIsEnclosed) {
  EXPECT_TRUE(is_explained(product_of_noise, {0}));
  EXPECT_TRUE(is_explained(scaled_noise, {0}));
  EXPECT_TRUE(is_explained(scaled_noise, {1e6f}));
  EXPECT_FALSE(is_explained(scaled_noise, {4e6f})) << "more than rounding gives";
  EXPECT_FALSE(is_explained(scaled_noise, {NAN}));
}

// Noise in one element does not loosen the check of another.
TEST(Explanation, BesideNoiseTheRuleDecides) {
  constexpr float unit = 0x1p-32f;
  const auto both = [](Value x) {
    return ops::concat(Values{scaled_noise(x) * double{unit}, ops::exp(x)}, {{"axis", 0}});
  };
  const float right = std::exp(0.3f);
  EXPECT_TRUE(is_explained(both, {1e6f * unit, right}));
  EXPECT_FALSE(is_explained(both, {1e6f * unit, right * 1.0001f}));
  EXPECT_FALSE(is_explained(both, {4e6f * unit, right}));
}

}  // namespace
}  // namespace hone::fuzz
