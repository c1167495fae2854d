// The derivative of attention, which goes over blocks of rows, against that of its expansion.
#include <gtest/gtest.h>

#include <cmath>

#include "grad/gradients.h"
#include "ops/common.h"
#include "ops/expand.h"
#include "test/ops/harness.h"

namespace hone {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Setting {
  std::string name;
  std::vector<Type> operands;  // q, k, v, and a mask if there is one
  Attrs attrs;
};

// y, its weighed derivatives by all floats, with the derivative of attention or of its expansion.
Function backward(const Setting& s, bool of_expansion) {
  Function f;
  Values operands, xs;
  for (const Type& t : s.operands) operands.push_back(f.add_param(t, cat("x", operands.size())));
  for (const Value& x : operands)
    if (is_float(x.dtype())) xs.push_back(x);
  Value y = ops::attention(operands, s.attrs);
  const Type type = y.type();
  if (of_expansion)
    y = ops::attention.expand({ops::attention, operands, s.attrs, f.graph(), std::span(&type, 1)})
            .at(0);
  const Value dy = f.add_param(type, "dy");
  for (const Value& d : gradients(std::span(&y, 1), std::span(&dy, 1), xs)) f.add_result(d);
  return expand_composites(f);
}

std::vector<Array> inputs_of(const Setting& s, std::int64_t size) {
  std::mt19937_64 random(7);
  const auto fill = [&](DType t) { return harness::random_number(t, -2, 2, random); };
  std::vector<Array> in;
  for (const Type& t : s.operands) in.push_back(harness::filled(t, fill, size));
  Type y = s.operands[0];
  y.shape[-1] = s.operands[2].shape[-1];
  in.push_back(harness::filled(y, fill, size));
  return in;
}

void expect_equal(const Setting& s, const std::vector<Array>& in, Mode mode, double tolerance) {
  SCOPED_TRACE(s.name);
  const std::vector<Wide> got = evaluate_wide(backward(s, false), in, mode),
                          want = evaluate_wide(backward(s, true), in, mode);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].dims, want[i].dims);
    ASSERT_EQ(got[i].dtype, want[i].dtype);
    double most = 1, worst = 0;
    for (std::size_t k = 0; k < got[i].reals.size(); ++k) {
      ASSERT_EQ(std::isnan(got[i].reals[k]), std::isnan(want[i].reals[k]))
          << "operand " << i << " element " << k;
      if (std::isnan(want[i].reals[k])) continue;
      most = std::max(most, std::fabs(want[i].reals[k]));
      worst = std::max(worst, std::fabs(got[i].reals[k] - want[i].reals[k]));
    }
    EXPECT_LE(worst, tolerance * most) << "operand " << i;
  }
}

Attrs with(Attrs attrs) {
  attrs.set("scale", 0.5);
  return attrs;
}

// Every kind of mask for l queries and s keys.
std::vector<Setting> settings(DType t, const Dim& l, const Dim& s) {
  const auto of = [&](Dims dims) { return Type(t, Shape(std::move(dims))); };
  const std::vector<Type> plain = {of({2, l, 3}), of({2, s, 3}), of({2, s, 2})};
  const auto masked = [&](const Type& mask) {
    std::vector<Type> all = plain;
    all.push_back(mask);
    return all;
  };
  const Type seen(DType::b1, {l, s});
  return {{"plain", plain, with({})},
          {"causal", plain, with({{"causal", Dims{0}}})},
          {"causal from the third", plain, with({{"causal", Dims{3}}})},
          {"causal by size", plain, with({{"causal", Dims{s - l}}})},
          {"softcap", plain, with({{"softcap", 1.5}})},
          {"bool", masked(seen), with({{"masked", -3.0}})},
          {"bool and causal", masked(seen), with({{"masked", -3.0}, {"causal", Dims{1}}})},
          {"added", masked(of({l, s})), with({})},
          {"added to each", masked(of({2, l, 1})), with({{"causal", Dims{0}}})},
          {"added to rows", masked(of({2, 1, s})), with({{"softcap", 2.0}})},
          {"added to keys", masked(of({s})), with({{"causal", Dims{5}}})},
          {"grouped",
           {of({2, 4, l, 2}), of({2, 2, s, 2}), of({2, 2, s, 3}), of({2, 1, l, s})},
           with({{"causal", Dims{0}}})},
          {"one matrix", {of({l, 2}), of({s, 2}), of({s, 2})}, with({})}};
}

TEST(AttentionGradient, IsThatOfTheExpansion) {
  for (const auto& [l, s] :
       {std::pair(1, 1), {7, 9}, {64, 64}, {65, 65}, {128, 100}, {150, 200}, {300, 300}})
    for (const Setting& x : settings(DType::f64, l, s)) {
      SCOPED_TRACE(cat(l, " queries, ", s, " keys"));
      expect_equal(x, inputs_of(x, 3), Mode::wide, 1e-12);
    }
}

TEST(AttentionGradient, OfOpenLengths) {
  const Dim n = Dim::symbol("n", 0, 400), m = Dim::symbol("m", 1, 400);
  for (const std::int64_t size : {1, 7, 64, 65, 150}) {
    SCOPED_TRACE(size);
    for (const Setting& x : settings(DType::f64, n, n))
      expect_equal(x, inputs_of(x, size), Mode::wide, 1e-12);
  }
  for (const Setting& x : settings(DType::f64, m, 70))
    expect_equal(x, inputs_of(x, 140), Mode::wide, 1e-12);
}

TEST(AttentionGradient, OfNarrowFloats) {
  for (const Setting& x : settings(DType::f32, 130, 70))
    expect_equal(x, inputs_of(x, 3), Mode::strict, 2e-6);
  for (const Setting& x : settings(DType::f16, 130, 70))
    expect_equal(x, inputs_of(x, 3), Mode::strict, 4e-3);
  for (const Setting& x : settings(DType::bf16, 130, 70))
    expect_equal(x, inputs_of(x, 3), Mode::strict, 3e-2);
}

// Such a row is NaN, and so is what depends on it.
TEST(AttentionGradient, OfARowWithoutKeys) {
  const std::vector<Type> plain(3, Type(DType::f64, {100, 2}));
  Setting s{"a row", plain, with({})};
  s.operands.push_back(Type(DType::b1, {100, 100}));
  std::vector<Array> in = inputs_of(s, 3);
  for (std::int64_t k = 0; k < 100; ++k) in[3].set_real(99 * 100 + k, 0);
  expect_equal(s, in, Mode::wide, 1e-12);
  s.operands[3] = Type(DType::f64, {100, 100});
  in[3] = Array::zeros(DType::f64, {100, 100});
  for (std::int64_t k = 0; k < 100; ++k) in[3].set_real(70 * 100 + k, -infinity);
  expect_equal(s, in, Mode::wide, 1e-12);
  const Setting late{"causal", plain, with({{"causal", Dims{-1}}})};
  expect_equal(late, inputs_of(late, 3), Mode::wide, 1e-12);
}

std::int64_t largest_value(const Function& f) {
  std::int64_t most = 0;
  for (NodeId n : live_nodes(f)) {
    for (const Type& t : f.graph().result_types(n)) most = std::max(most, t.shape.count().number());
    for (const Attrs::Entry& e : f.graph().attrs(n).entries())
      if (const auto* body = std::get_if<FunctionRef>(&e.second))
        most = std::max(most, largest_value(**body));
  }
  return most;
}

TEST(AttentionGradient, HasNoValueOfTheSizeOfTheScores) {
  for (const std::int64_t length : {512, 4096}) {
    const Type x = f32({2, length, 8});
    for (const Attrs& attrs : {with({}), with({{"causal", Dims{0}}})})
      EXPECT_EQ(largest_value(expand_composites(
                    harness::function_of(ops::attention_gradient, {{x, x, x, x, x}, attrs}))),
                2 * 64 * length);
  }
}

}  // namespace
}  // namespace hone
