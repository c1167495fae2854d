// Results of other programs that differ because rounding decided a step.
#include "verify/model/step_edge.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "ops/common.h"
#include "ref/evaluate.h"

namespace hone {
namespace {

Array floats(const std::vector<float>& data) {
  Array a = Array::zeros(DType::f32, {static_cast<std::int64_t>(data.size())});
  std::memcpy(a.writable_bytes().data(), data.data(), data.size() * sizeof(float));
  return a;
}

struct Scaled {
  Function f;
  std::vector<Array> inputs;
};

// Three times x, rounded to whole numbers or not: 2.5 and 1.2.
Scaled scaled(bool is_rounded) {
  Scaled out;
  const Value x = out.f.add_param({DType::f32, Shape(Dims{2})}, "x"), y = x * 3.0;
  out.f.add_result(is_rounded ? ops::round(y) : y, "y");
  out.inputs = {floats({2.5F / 3, 0.4F})};
  return out;
}

bool differs_by_a_step(const Scaled& s, const Array& expected) {
  const Array got = evaluate(s.f, s.inputs).at(0);
  return hone::differs_by_a_step(s.f, {}, s.inputs, 0, got, expected, 1e-4, 1e-3);
}

TEST(StepEdge, ANumberOnTheEdgeMayBeEither) {
  const Scaled s = scaled(true);
  EXPECT_TRUE(differs_by_a_step(s, floats({2, 1})));
  EXPECT_TRUE(differs_by_a_step(s, floats({3, 1})));
}

TEST(StepEdge, OthersMayNot) {
  const Scaled s = scaled(true);
  EXPECT_FALSE(differs_by_a_step(s, floats({3, 2})));
  EXPECT_FALSE(differs_by_a_step(s, floats({5, 1})));
  EXPECT_FALSE(differs_by_a_step(s, floats({std::numeric_limits<float>::quiet_NaN(), 1})));
}

TEST(StepEdge, WithoutStepsTheToleranceDecides) {
  EXPECT_FALSE(differs_by_a_step(scaled(false), floats({2.6F, 1.2F})));
}

}  // namespace
}  // namespace hone
