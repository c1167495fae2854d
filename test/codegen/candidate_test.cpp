// Candidates built around a contraction or a convolution, compiled and run, against the reference.
#include <gtest/gtest.h>

#include <random>

#include "group_runner.h"
#include "kernel/contraction.h"
#include "kernel/convolution.h"
#include "ops/common.h"
#include "ref/compare.h"
#include "ref/evaluate.h"

namespace hone::test {

namespace {

using Build = std::optional<Candidate> (*)(const GroupSpec&, const TargetInfo&);

std::vector<Array> random_inputs(const Function& f,
                                 const std::map<std::string, std::int64_t>& sizes) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> real(-1, 1);
  std::vector<Array> out;
  for (const Type& t : f.param_types()) {
    std::vector<std::int64_t> dims;
    for (const Dim& d : t.shape.dims)
      dims.push_back(d.eval([&](std::string_view s) { return sizes.at(std::string(s)); }));
    Array a = Array::zeros(t.dtype, dims);
    for (std::int64_t i = 0; i < a.count(); ++i) {
      if (is_float(t.dtype))
        a.set_real(i, real(random));
      else
        a.set_integer(i, static_cast<std::int64_t>(random() % 7) - (is_signed(t.dtype) ? 3 : 0));
    }
    out.push_back(std::move(a));
  }
  return out;
}

// Parameters whose names start with 'w' are weights.
GroupSpec group_of(const Function& f) {
  GroupSpec spec = spec_of(f);
  for (std::size_t i = 0; i < f.params().size(); ++i)
    spec.param_is_weight[i] = f.params()[i].name.starts_with('w');
  return spec;
}

struct Expect {
  std::size_t steps = 2;
  bool prepared = true;
};

void check(Build build, const Function& f, Expect expect = {},
           const std::map<std::string, std::int64_t>& sizes = {}) {
  const GroupSpec spec = group_of(f);
  const std::vector<Array> inputs = random_inputs(f, sizes);
  const std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::strict),
                          wide = evaluate_wide(f, inputs, Mode::wide);
  for (const std::string& target : llvm::targets()) {
    SCOPED_TRACE(target + "\n" + print(f));
    std::optional<Candidate> candidate = build(spec, cpu_target_info(target));
    ASSERT_TRUE(candidate);
    std::string trace;
    ASSERT_EQ(candidate->steps.size(), expect.steps);
    ASSERT_EQ(candidate->steps[0].prepare, expect.prepared && expect.steps > 1);
    for (const Candidate::Step& s : candidate->steps) trace += print(std::get<Kernel>(s.what));
    SCOPED_TRACE(trace);
    CompiledCandidate compiled(*candidate, target);
    std::vector<Array> got = compiled.run(spec, inputs, {.target = target});
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_TRUE(accept(got[i], strict[i], wide[i]))
          << "result " << i << ": " << accept(got[i], strict[i], wide[i]);
    std::vector<Array> parts =
        compiled.run(spec, inputs, {.target = target, .chunks_per_call = 1, .backwards = true});
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_TRUE(std::ranges::equal(got[i].bytes(), parts[i].bytes())) << "result " << i;
  }
}

void refuse(Build build, const Function& f) {
  EXPECT_FALSE(build(group_of(f), cpu_target_info("x86-64-v3"))) << print(f);
}

// ---- contraction

Value with_bias(Value y, Value bias) { return y + broadcast_to(bias, y.shape()); }

TEST(ContractionCandidate, DenseLayer) {
  for (std::int64_t m : {1, 5, 40}) {
    Function f;
    Value x = f.add_param(f32({m, 37}), "x"), w = f.add_param(f32({37, 70}), "w"),
          bias = f.add_param(f32({70}), "w_bias");
    f.add_result(ops::relu(with_bias(ops::matmul(x, w), bias)));
    check(contraction_candidate, f);
  }
}

TEST(ContractionCandidate, TransposedWeights) {
  Function f;
  Value x = f.add_param(f32({20, 37}), "x"), w = f.add_param(f32({50, 37}), "w");
  f.add_result(ops::matmul(x, transpose_matrix(w)));
  check(contraction_candidate, f);
}

TEST(ContractionCandidate, RowsOfSeveralAxes) {
  Function f;
  Value x = f.add_param(f32({3, 7, 33}), "x"), w = f.add_param(f32({33, 20}), "w"),
        r = f.add_param(f32({3, 7, 20}), "r");
  f.add_result(ops::matmul(x, w) + r);
  check(contraction_candidate, f);
}

TEST(ContractionCandidate, ReshapedAndTransposedResults) {
  Function f;
  Value x = f.add_param(f32({2, 6, 33}), "x"), w = f.add_param(f32({33, 20}), "w");
  Value y = ops::matmul(x, w);
  // Heads of an attention: [batch, rows, head, channel] to [batch, head, rows, channel].
  f.add_result(transpose_by(reshape_to(y, {2, 6, 4, 5}), Axes{0, 2, 1, 3}));
  f.add_result(reshape_to(y * 2.0, {12, 20}));
  check(contraction_candidate, f);
}

TEST(ContractionCandidate, FusedProducers) {
  Function f;
  Value x = f.add_param(f32({20, 37}), "x"), w = f.add_param(f32({37, 70}), "w"),
        scale = f.add_param(f32({37}), "w_scale");
  f.add_result(ops::matmul(ops::sigmoid(x * broadcast_to(scale, x.shape())), w));
  check(contraction_candidate, f);
}

TEST(ContractionCandidate, WeightsMadeOfWeights) {
  Function f;
  Value x = f.add_param(f32({20, 37}), "x"), w = f.add_param(f16({37, 30}), "w"),
        scale = f.add_param(f32({30}), "w_scale");
  Value weights = cast_to(w, DType::f32);
  f.add_result(ops::matmul(x, weights * broadcast_to(scale, weights.shape())));
  check(contraction_candidate, f);
}

TEST(ContractionCandidate, NarrowFloats) {
  for (DType t : {DType::f16, DType::bf16}) {
    Function f;
    Value x = f.add_param({t, {20, 37}}, "x"), w = f.add_param({t, {37, 70}}, "w"),
          bias = f.add_param({t, {70}}, "w_bias");
    f.add_result(ops::relu(with_bias(ops::matmul(x, w), bias)));
    check(contraction_candidate, f);
  }
}

TEST(ContractionCandidate, OtherNumbers) {
  for (DType t : {DType::f64, DType::i32, DType::i64}) {
    Function f;
    Value x = f.add_param({t, {9, 37}}, "x"), w = f.add_param({t, {37, 21}}, "w");
    f.add_result(ops::matmul(x, w));
    check(contraction_candidate, f);
  }
}

TEST(ContractionCandidate, BothOperandsAtRunTime) {
  auto product = [](std::int64_t m, std::int64_t k, std::int64_t n) {
    Function f;
    f.add_result(ops::matmul(f.add_param(f32({m, k}), "x"), f.add_param(f32({k, n}), "y")));
    return f;
  };
  check(contraction_candidate, product(20, 37, 70), {.steps = 1});
  check(contraction_candidate, product(200, 200, 100), {.steps = 2, .prepared = false});
}

TEST(ContractionCandidate, AttentionScores) {
  Function f;
  Value q = f.add_param(f32({2, 3, 17, 24}), "q"), k = f.add_param(f32({2, 3, 19, 24}), "k");
  Value scores = ops::matmul(q, transpose_by(k, Axes{0, 1, 3, 2}));
  f.add_result(scores * 0.2);
  check(contraction_candidate, f, {.steps = 2, .prepared = false});
}

TEST(ContractionCandidate, OneColumn) {
  Function f;
  Value w = f.add_param(f32({70, 37}), "w"), x = f.add_param(f32({37}), "x");
  f.add_result(ops::matmul(w, x));
  check(contraction_candidate, f);
}

TEST(ContractionCandidate, BatchKnownAtRunTime) {
  Function f;
  Dim n = Dim::symbol("n", 1, 100);
  Value x = f.add_param(f32({n, 5, 37}), "x"), w = f.add_param(f32({37, 70}), "w"),
        r = f.add_param(f32({n, 5, 70}), "r");
  f.add_result(ops::tanh(ops::matmul(x, w) + r));
  for (std::int64_t size : {1, 3, 8, 17}) check(contraction_candidate, f, {}, {{"n", size}});
}

TEST(ContractionCandidate, LongSums) {
  Function f;
  Value x = f.add_param(f32({20, 2500}), "x"), w = f.add_param(f32({2500, 40}), "w");
  f.add_result(ops::relu(ops::matmul(x, w)));
  f.add_result(ops::matmul(x, w));
  check(contraction_candidate, f);
}

TEST(ContractionCandidate, RefusesWhatIsNoContraction) {
  Function f;
  Value x = f.add_param(f32({20, 30}), "x");
  f.add_result(ops::relu(x));
  refuse(contraction_candidate, f);
  Function sums;
  x = sums.add_param(f32({20, 30}), "x");
  Value w = sums.add_param(f32({30, 40}), "w");
  sums.add_result(reduce_axes(ops::reduce_sum, ops::matmul(x, w), {1}));
  refuse(contraction_candidate, sums);
}

// ---- convolution

struct ConvCase {
  Dims in = {12, 14};
  std::vector<std::int64_t> window = {3, 3}, strides = {1, 1}, dilations = {1, 1}, low = {1, 1},
                            high = {1, 1};
  std::int64_t groups = 1, in_channels = 6, out_channels = 20;
  Dim images = 1;
  DType dtype = DType::f32;
};

// The group's function up to the convolution: parameters x and w.
Value convolution(Function& f, const ConvCase& c,
                  const std::function<Value(Value)>& producer = {}) {
  Dims x = {c.images}, w;
  x.insert(x.end(), c.in.begin(), c.in.end());
  x.push_back(c.in_channels);
  for (std::int64_t n : c.window) w.push_back(n);
  w.push_back(c.in_channels / c.groups);
  w.push_back(c.out_channels);
  Value input = f.add_param({c.dtype, Shape(x)}, "x"),
        weights = f.add_param({c.dtype, Shape(w)}, "w");
  if (producer) input = producer(input);
  return ops::conv(Values{input, weights}, {{"strides", dims_of(c.strides)},
                                            {"dilations", dims_of(c.dilations)},
                                            {"pads_low", dims_of(c.low)},
                                            {"pads_high", dims_of(c.high)},
                                            {"groups", c.groups},
                                            {"channels_last", std::int64_t{1}}});
}

void check_conv(const ConvCase& c, Build build = convolution_candidate,
                const std::map<std::string, std::int64_t>& sizes = {}) {
  Function f;
  Value y = convolution(f, c);
  Value bias = f.add_param({c.dtype, {c.out_channels}}, "w_bias"), r = f.add_param(y.type(), "r");
  f.add_result(ops::relu(with_bias(y, bias) + r));
  check(build, f, {}, sizes);
}

TEST(ConvolutionCandidate, BiasResidualAndRelu) {
  check_conv({});
  check_conv({.strides = {2, 2}, .high = {0, 1}, .out_channels = 33});
  check_conv(
      {.in = {50}, .window = {5}, .strides = {2}, .dilations = {1}, .low = {0}, .high = {4}});
  check_conv({.in = {5, 6, 7},
              .window = {2, 3, 1},
              .strides = {1, 1, 1},
              .dilations = {1, 1, 1},
              .low = {1, 0, 0},
              .high = {0, 1, 0},
              .images = 2});
}

TEST(ConvolutionCandidate, GroupsAndDepthwise) {
  check_conv({.groups = 2});
  check_conv({.groups = 20, .in_channels = 20});
  check_conv({.groups = 3, .in_channels = 3, .out_channels = 12});  // several channels each
}

TEST(ConvolutionCandidate, NarrowFloats) {
  check_conv({.dtype = DType::f16});
  check_conv({.groups = 20, .in_channels = 20, .dtype = DType::f16});
  check_conv({.dtype = DType::bf16});
}

TEST(ConvolutionCandidate, SinglePixelsAreAContraction) {
  ConvCase c{.window = {1, 1}, .low = {0, 0}, .high = {0, 0}, .images = 2};
  check_conv(c, contraction_candidate);
  check_conv(c, convolution_candidate);
  c.images = Dim::symbol("n", 1, 9);
  check_conv(c, contraction_candidate, {{"n", 3}});
  c.dtype = DType::f16;
  check_conv(c, contraction_candidate, {{"n", 2}});
  c.strides = {2, 2};
  check_conv(c, convolution_candidate, {{"n", 2}});
}

TEST(ConvolutionCandidate, ImagesKnownAtRunTime) {
  check_conv({.images = Dim::symbol("n", 1, 50)}, convolution_candidate, {{"n", 3}});
  check_conv({.in = {Dim::symbol("h", 4, 90), 14}}, convolution_candidate, {{"h", 11}});
}

TEST(ConvolutionCandidate, FusedProducerAndTwoResults) {
  Function f;
  Value y = convolution(f, {.in_channels = 19}, [](Value x) { return ops::tanh(x * 0.5); });
  Value z = ops::sigmoid(y);
  f.add_result(y * z);
  f.add_result(z);
  check(convolution_candidate, f);
}

TEST(ConvolutionCandidate, ChannelsFirstAroundIt) {
  Function f;
  ConvCase c;
  Value x = f.add_param(f32({1, 6, 12, 14}), "x"), w = f.add_param(f32({20, 6, 3, 3}), "w");
  Value y = ops::conv(Values{transpose_by(x, Axes{0, 2, 3, 1}), transpose_by(w, Axes{2, 3, 1, 0})},
                      {{"strides", dims_of(c.strides)},
                       {"dilations", dims_of(c.dilations)},
                       {"pads_low", dims_of(c.low)},
                       {"pads_high", dims_of(c.high)},
                       {"groups", std::int64_t{1}},
                       {"channels_last", std::int64_t{1}}});
  f.add_result(transpose_by(ops::relu(y), Axes{0, 3, 1, 2}));
  check(convolution_candidate, f);
}

// A residual that lies where the result goes: each element is read before it is written, once.
void check_over_residual(Build build, const Function& f, std::size_t residual) {
  const GroupSpec spec = group_of(f);
  const std::vector<Array> inputs = random_inputs(f, {});
  for (const std::string& target : llvm::targets()) {
    std::optional<Candidate> candidate = build(spec, cpu_target_info(target));
    ASSERT_TRUE(candidate);
    CompiledCandidate compiled(*candidate, target);
    const Array apart = compiled.run(spec, inputs, {.target = target}).at(0);
    const Sizes sizes(f, inputs);
    std::vector<Array> memory = inputs;
    std::vector<Array> temporaries;
    for (const Candidate::Temporary& t : candidate->temporaries)
      temporaries.push_back(Array::zeros(t.type.dtype, sizes(t.type.shape.dims)));
    for (std::size_t i = 0; i < candidate->steps.size(); ++i) {
      std::vector<void*> buffers;
      using Kind = Candidate::Operand::Kind;
      for (const Candidate::Operand& o : candidate->steps[i].operands) {
        Array& a = o.kind == Kind::temporary ? temporaries[static_cast<std::size_t>(o.index)]
                   : o.kind == Kind::result  ? memory[residual]
                                             : memory[static_cast<std::size_t>(o.index)];
        buffers.push_back(a.writable_bytes().data());
      }
      compiled.launch(i, buffers, sizes, {});
    }
    EXPECT_TRUE(std::ranges::equal(memory[residual].bytes(), apart.bytes())) << target;
  }
}

TEST(ConvolutionCandidate, ResultInPlaceOfTheResidual) {
  for (bool is_strided : {false, true}) {
    Function f;
    ConvCase c;
    if (is_strided) c.strides = {2, 2};
    Value y = convolution(f, c), r = f.add_param(y.type(), "r");
    f.add_result(ops::relu(y + r));
    check_over_residual(convolution_candidate, f, 2);
  }
}

TEST(ContractionCandidate, ResultInPlaceOfTheResidual) {
  for (std::int64_t m : {13, 20, 77}) {
    Function f;
    Value x = f.add_param(f32({m, 37}), "x"), w = f.add_param(f32({37, 70}), "w"),
          r = f.add_param(f32({m, 70}), "r");
    f.add_result(ops::tanh(ops::matmul(x, w)) + r);
    check_over_residual(contraction_candidate, f, 2);
  }
}

TEST(ConvolutionCandidate, RefusesOtherForms) {
  Function f;
  Value x = f.add_param(f32({1, 6, 12, 14}), "x"), w = f.add_param(f32({20, 6, 3, 3}), "w");
  f.add_result(ops::conv(Values{x, w}, {{"strides", Dims{1, 1}},
                                        {"dilations", Dims{1, 1}},
                                        {"pads_low", Dims{1, 1}},
                                        {"pads_high", Dims{1, 1}},
                                        {"groups", std::int64_t{1}},
                                        {"channels_last", std::int64_t{0}}}));
  refuse(convolution_candidate, f);
  refuse(contraction_candidate, f);
}

}  // namespace

}  // namespace hone::test
