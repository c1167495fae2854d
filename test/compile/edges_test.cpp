// Edges: numbers at which an operation that reads a parameter changes its behaviour.
#include "verify/kernel/edges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/common.h"
#include "verify/sample.h"

namespace hone {
namespace {

const Type reals(DType::f32, {8});

std::vector<double> edges_of(const std::function<Value(Value)>& make) {
  Function f;
  f.add_result(make(f.add_param(reals, "x")), "y");
  return edges_of_params(f).at(0);
}

bool holds(const std::vector<double>& edges, double x) {
  return std::ranges::find(edges, x) != edges.end();
}

TEST(Edges, AreThoseOfWhatReadsTheNumbers) {
  const auto has_those_of_exp = [](const std::function<Value(Value)>& make) {
    return holds(edges_of(make), ops::exp.edges[0]);
  };
  EXPECT_TRUE(has_those_of_exp([](Value x) { return ops::exp(x); }));
  EXPECT_TRUE(has_those_of_exp([](Value x) { return ops::exp(-reshape_to(x, {2, 4})); }));
  EXPECT_TRUE(has_those_of_exp([](Value x) { return ops::exp(cast_to(x, DType::f64)); }));
  EXPECT_FALSE(has_those_of_exp([](Value x) { return ops::exp(x + 1.0); }));
  EXPECT_FALSE(has_those_of_exp([](Value x) { return ops::log(x); }));
  // Large numbers would overflow in one summation order and not in another.
  EXPECT_TRUE(
      edges_of([](Value x) { return reduce_axes(ops::reduce_sum, ops::exp(x), {0}); }).empty());
}

TEST(Edges, OfACastAreTheEndsOfTheDtype) {
  const auto cast = [](DType to) { return edges_of([=](Value x) { return cast_to(x, to); }); };
  for (const double x : {-129.0, -128.5, -128.0, 127.0, 127.5, 128.0})
    EXPECT_TRUE(holds(cast(DType::i8), x)) << x;
  for (const double x : {65504.0, 65520.0, 65472.0, 0x1p-24, 0x1p-25})
    EXPECT_TRUE(holds(cast(DType::f16), x)) << x;
  EXPECT_TRUE(holds(cast(DType::bf16), 0x1.fep127));
  EXPECT_TRUE(holds(cast(DType::f8e4m3fn), 448));
  EXPECT_TRUE(holds(cast(DType::f8e4m3fn), 464));
}

// Both signs of each edge, and its neighbours, appear among 4,096 elements.
TEST(Edges, StandAmongExtremeNumbers) {
  const double edges[] = {88.5, 2.5};
  Array a = Array::zeros(DType::f32, {4096});
  sample(a.writable_bytes(), DType::f32, Fill::extreme, 1, edges);
  std::vector<double> all;
  for (std::int64_t i = 0; i < a.count(); ++i) all.push_back(a.real(i));
  for (const double edge : edges)
    for (const float sign : {1.0F, -1.0F}) {
      const float x = sign * static_cast<float>(edge);
      EXPECT_TRUE(holds(all, x));
      EXPECT_TRUE(holds(all, std::nextafter(x, INFINITY)));
      EXPECT_TRUE(holds(all, std::nextafter(x, -INFINITY)));
    }
  sample(a.writable_bytes(), DType::f32, Fill::extreme, 1);
  for (std::int64_t i = 0; i < a.count(); ++i) EXPECT_NE(a.real(i), 88.5);
}

}  // namespace
}  // namespace hone
