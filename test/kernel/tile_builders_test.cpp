// Contractions and convolutions as statements: they print and parse, and the interpreter, which
// checks for races and unwritten memory, agrees with the reference.
#include <gtest/gtest.h>

#include <random>

#include "kernel/tiles/contraction.h"
#include "kernel/tiles/convolution.h"
#include "machines.h"
#include "ops/common.h"
#include "ref/compare.h"
#include "ref/evaluate.h"
#include "run.h"

namespace hone::test {

namespace {

const TargetInfo avx2 = with_vectors_of_256_bits();

std::vector<Array> numbers_for(const Function& f) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> real(-1, 1);
  std::vector<Array> out;
  for (const Type& t : f.param_types()) {
    std::vector<std::int64_t> dims;
    for (const Dim& d : t.shape.dims) dims.push_back(d.is_number() ? d.number() : 13);
    Array a = Array::zeros(t.dtype, dims);
    for (std::int64_t i = 0; i < a.count(); ++i)
      is_float(t.dtype) ? a.set_real(i, real(random))
                        : a.set_integer(i, static_cast<std::int64_t>(random() % 256) - 128);
    out.push_back(std::move(a));
  }
  return out;
}

void check(const Function& f, const std::optional<Candidate>& candidate,
           const InterpretChecks& checks) {
  ASSERT_TRUE(candidate);
  for (const Candidate::Step& step : candidate->steps) {
    const Kernel& k = std::get<Kernel>(step.what);
    check(k);
    const Kernel parsed = parse_kernel(print(k));
    ASSERT_EQ(print(parsed), print(k));
    ASSERT_EQ(hash(parsed), hash(k)) << print(k);
  }
  SCOPED_TRACE(print(std::get<Kernel>(candidate->steps.back().what)));
  const std::vector<Array> inputs = numbers_for(f);
  const std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::strict),
                          wide = evaluate_wide(f, inputs, Mode::wide);
  const std::vector<Array> got = interpret_candidate(*candidate, f, inputs, checks);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Comparison r = accept(got[i], strict[i], wide[i]);
    EXPECT_TRUE(r.ok) << r;
  }
}

Function product(const Dim& m, std::int64_t n, std::int64_t k, bool is_transposed = false) {
  Function f;
  Value x = f.add_param(Type(DType::f32, is_transposed ? Shape{k, m} : Shape{m, k}), "x");
  const Value w = f.add_param(f32({k, n}), "w");
  if (is_transposed) x = transpose_matrix(x);
  f.add_result(ops::relu(ops::matmul(x, w)));
  return f;
}

TEST(TileBuilders, ContractionsAreInterpreted) {
  constexpr InterpretChecks checks = {.param_races = true, .unwritten = true};
  for (const Function& f :
       {product(21, 37, 30), product(13, 16, 9, true), product(Dim::symbol("m", 0, 100), 20, 17)})
    for (std::int64_t pack : {0, 1})
      for (std::int64_t read_a : {0, 1, 2})
        for (std::int64_t k_part : {8, 100}) {
          const Tuning t = {{"pack_b", pack}, {"read_a", read_a}, {"k_part", k_part}};
          check(f, contraction_candidate(spec_of(f), avx2, t), checks);
        }
}

TEST(TileBuilders, NarrowPanelsAreInterpreted) {
  constexpr InterpretChecks checks = {.param_races = true, .unwritten = true};
  for (DType t : {DType::bf16, DType::f16, DType::i8}) {
    Function f;
    const Value x = f.add_param({t, {11, 30}}, "x"), w = f.add_param({t, {30, 37}}, "w");
    f.add_result(is_float(t) ? ops::matmul(x, w) : dot_general(x, w, {}, {{1, 0}}, DType::i32));
    const auto candidate = contraction_candidate(spec_of(f), avx2, {{"pack_b", 1}});
    ASSERT_TRUE(candidate);
    EXPECT_EQ(candidate->temporaries.at(0).type.dtype, t);
    check(f, candidate, checks);
  }
}

Function convolution(std::int64_t size, std::int64_t channels, std::int64_t out_channels,
                     std::int64_t groups, std::int64_t stride) {
  Function f;
  const Value x = f.add_param(f32({2, size, size + 1, channels}), "x"),
              w = f.add_param(f32({3, 3, channels / groups, out_channels}), "w");
  f.add_result(ops::relu(ops::conv(Values{x, w}, {{"strides", Dims{stride, stride}},
                                                  {"dilations", Dims{1, 1}},
                                                  {"groups", groups},
                                                  {"pads_low", Dims{1, 1}},
                                                  {"pads_high", Dims{1, 0}},
                                                  {"channels_last", 1}})));
  return f;
}

TEST(TileBuilders, ConvolutionsAreInterpreted) {
  // Beyond the last pixel of a chunk tiles read unwritten memory, but do not store results of it.
  constexpr InterpretChecks checks = {.param_races = true};
  for (const Function& f :
       {convolution(9, 5, 18, 1, 1), convolution(9, 6, 8, 2, 2), convolution(12, 16, 16, 16, 1)})
    for (std::int64_t in_place : {0, 1})
      check(f, convolution_candidate(spec_of(f), avx2, {{"in_place", in_place}}), checks);
}

}  // namespace

}  // namespace hone::test
