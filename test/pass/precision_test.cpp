// Whole models in another precision: the dtypes they compute in, and that the results are close.
#include "pass/precision.h"

#include <gtest/gtest.h>

#include <set>

#include "ops/common.h"
#include "test/pass/evaluate.h"

namespace hone {
namespace {

// conv, norm, residual, pooling, a hidden layer, softmax: each with weights.
Function network(DType t) {
  Function f;
  const auto wave = [&](Dims dims, double scale) {
    std::vector<std::int64_t> sizes;
    for (const Dim& d : dims) sizes.push_back(d.number());
    Array a = Array::zeros(t, sizes);
    for (std::int64_t i = 0; i < a.count(); ++i)
      a.set_real(i, scale * (static_cast<double>((i * 7) % 13) / 6 - 1));
    return constant(f.graph(), a);
  };
  const Value x = f.add_param(Type(t, Shape{2, 3, 8, 8}), "x");
  const Dims ones = {1, 1}, none = {0, 0};
  Value y = ops::conv(Values{x, wave({4, 3, 3, 3}, 0.2)}, {{"strides", ones},
                                                           {"dilations", ones},
                                                           {"pads_low", ones},
                                                           {"pads_high", ones},
                                                           {"groups", std::int64_t{1}},
                                                           {"channels_last", std::int64_t{0}}});
  y = ops::relu(y);
  y = reshape_to(y, {2, 256});
  y = ops::layer_norm(Values{y, wave({256}, 1), wave({256}, 0.1)},
                      {{"axis", 1}, {"epsilon", 1e-5}});
  y = ops::matmul(y, wave({256, 10}, 0.1)) + broadcast_to(wave({10}, 0.1), Shape{2, 10});
  f.add_result(ops::softmax(y, {{"axis", 1}}), "y");
  return f;
}

std::set<DType> dtypes_of(const Function& f, const Op& op) {
  std::set<DType> out;
  for (NodeId n : live_nodes(f))
    if (&f.graph().op(n) == &op)
      for (const Value& v : f.graph().operands(n)) out.insert(v.dtype());
  return out;
}

std::vector<Array> image(DType t) {
  Array a = Array::zeros(t, {2, 3, 8, 8});
  for (std::int64_t i = 0; i < a.count(); ++i)
    a.set_real(i, std::sin(0.37 * static_cast<double>(i)));
  return {a};
}

Array filled(std::vector<std::int64_t> dims, const std::vector<double>& values) {
  Array a = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, values[static_cast<std::size_t>(i)]);
  return a;
}

double largest_difference(const Function& f, const Function& of, const std::vector<Array>& inputs) {
  const Wide a = evaluate_wide(f, inputs, Mode::strict).at(0),
             b = evaluate_wide(of, inputs, Mode::wide).at(0);
  double out = 0;
  for (std::size_t i = 0; i < a.reals.size(); ++i)
    out = std::max(out, std::fabs(a.reals[i] - b.reals[i]));
  return out;
}

TEST(Precision, ContractionsAreNarrowAndNormsAreNot) {
  const Function f = network(DType::f32);
  for (const auto& [precision, dtype] :
       {std::pair(Precision::fp16, DType::f16), std::pair(Precision::bf16, DType::bf16)}) {
    const Function narrow = with_precision(f, precision);
    EXPECT_EQ(narrow.param_types(), f.param_types());
    EXPECT_EQ(narrow.result_types(), f.result_types());
    for (const Op* op : {&ops::conv, &ops::matmul, &ops::relu})
      EXPECT_EQ(dtypes_of(narrow, *op), std::set{dtype}) << op->name;
    for (const Op* op : {&ops::layer_norm, &ops::softmax})
      EXPECT_EQ(dtypes_of(narrow, *op), std::set{DType::f32}) << op->name;
  }
}

TEST(Precision, NumbersAreAsNearAsTheDtypeAllows) {
  const Function f = network(DType::f32);
  const std::vector<Array> inputs = image(DType::f32);
  double error[4];
  for (Precision p : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
    error[static_cast<int>(p)] = largest_difference(with_precision(f, p), f, inputs);
  EXPECT_LT(error[0], 1e-6);
  EXPECT_LT(error[1], 5e-4);
  EXPECT_GT(error[1], error[0]) << "operands are rounded";
  EXPECT_LT(error[2], 5e-4);
  EXPECT_LT(error[3], 1e-2);
  EXPECT_GT(error[3], error[2]);
}

TEST(Precision, NarrowModelsComputeWide) {
  const Function f = network(DType::f16);
  const Function wide = with_precision(f, Precision::fp32);
  EXPECT_EQ(wide.param_types(), f.param_types());
  EXPECT_EQ(wide.result_types(), f.result_types());
  for (const Op* op : {&ops::conv, &ops::matmul, &ops::relu, &ops::layer_norm, &ops::softmax})
    EXPECT_EQ(dtypes_of(wide, *op), std::set{DType::f32}) << op->name;
  const std::vector<Array> inputs = image(DType::f16);
  EXPECT_LT(largest_difference(wide, f, inputs), largest_difference(f, f, inputs));
}

// Rounding to tf32, at the limits and halfway.
TEST(Precision, RoundsToTenBits) {
  Function f;
  const Value x = f.add_param(f32({8, 1}), "x");
  f.add_result(ops::matmul(x, constant(f.graph(), filled({1, 1}, {1}))));
  const std::vector<Array> in = {
      filled({8, 1}, {1 + 0x1p-10, 1 + 0x1p-11, 1 + 3 * 0x1p-11, 1 + 0x1.2p-11, -INFINITY, NAN,
                      0x1.fffffep127, -0x1p-149})};
  const double expected[] = {1 + 0x1p-10, 1, 1 + 0x1p-9, 1 + 0x1p-10, -INFINITY, NAN, INFINITY, 0};
  const Wide got = evaluate_wide(with_precision(f, Precision::tf32), in, Mode::strict).at(0);
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_TRUE(got.reals[i] == expected[i] ||
                (std::isnan(got.reals[i]) && std::isnan(expected[i])))
        << i << ": " << got.reals[i];
}

// A model without anything to cast stays unchanged. The plan's preparation finds constants that
// only weights need, see test/compile.
TEST(Precision, IntegersStay) {
  Function f;
  const Value x = f.add_param(Type(DType::i32, Shape{4}), "x");
  f.add_result(x + x, "y");
  EXPECT_TRUE(same_structure(with_precision(f, Precision::fp16), f));
}

TEST(Precision, NamesAreChecked) {
  EXPECT_EQ(precision_named("bf16"), Precision::bf16);
  EXPECT_THROW(precision_named("fp8"), UserError);
}

}  // namespace
}  // namespace hone
