// Groups around a contraction, a convolution or an attention, shared by the tests of all code
// generators.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "group_runner.h"
#include "kernel/tiles/attention.h"
#include "kernel/tiles/contraction.h"
#include "kernel/tiles/convolution.h"
#include "ops/common.h"

namespace hone::test {

using Build = std::optional<Candidate> (*)(const GroupSpec&, const TargetInfo&, const Tuning&);

inline std::vector<Array> random_inputs(const Function& f,
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
inline GroupSpec group_of(const Function& f) {
  GroupSpec spec = spec_of(f);
  for (std::size_t i = 0; i < f.params().size(); ++i)
    spec.param_is_weight[i] = f.params()[i].name.starts_with('w');
  return spec;
}

struct Expect {
  std::size_t steps = 2;
  bool prepared = true;
  std::optional<DType> packed = {};  // dtype of the packed right operand
};

// Called with each group; `sizes` are the values of the symbols.
struct Check {
  std::function<void(Build, const Function&, Expect, const std::map<std::string, std::int64_t>&)>
      run;

  void operator()(Build build, const Function& f, Expect expect = {},
                  const std::map<std::string, std::int64_t>& sizes = {}) const {
    run(build, f, expect, sizes);
  }
};

// ---- contraction

inline Value with_bias(Value y, Value bias) { return y + broadcast_to(bias, y.shape()); }

inline void contraction_dense_layer(const Check& check) {
  for (std::int64_t m : {1, 5, 40}) {
    Function f;
    Value x = f.add_param(f32({m, 37}), "x"), w = f.add_param(f32({37, 70}), "w"),
          bias = f.add_param(f32({70}), "w_bias");
    f.add_result(ops::relu(with_bias(ops::matmul(x, w), bias)));
    check(contraction_candidate, f);
  }
}

inline void contraction_transposed_weights(const Check& check) {
  Function f;
  Value x = f.add_param(f32({20, 37}), "x"), w = f.add_param(f32({50, 37}), "w");
  f.add_result(ops::matmul(x, transpose_matrix(w)));
  check(contraction_candidate, f);
}

// Large weights are transposed in square blocks; the columns of the last ones are partly padding.
inline void contraction_large_transposed_weights(const Check& check) {
  for (DType t : {DType::f32, DType::f16}) {
    Function f;
    Value x = f.add_param({t, {1, 1051}}, "x"), w = f.add_param({t, {4001, 1051}}, "w");
    f.add_result(ops::matmul(x, transpose_matrix(w)));
    check(contraction_candidate, f, {.packed = t});
  }
}

inline void contraction_rows_of_several_axes(const Check& check) {
  Function f;
  Value x = f.add_param(f32({3, 7, 33}), "x"), w = f.add_param(f32({33, 20}), "w"),
        r = f.add_param(f32({3, 7, 20}), "r");
  f.add_result(ops::matmul(x, w) + r);
  check(contraction_candidate, f);
}

inline void contraction_reshaped_and_transposed_results(const Check& check) {
  Function f;
  Value x = f.add_param(f32({2, 6, 33}), "x"), w = f.add_param(f32({33, 20}), "w");
  Value y = ops::matmul(x, w);
  // Heads of an attention: [batch, rows, head, channel] to [batch, head, rows, channel].
  f.add_result(transpose_by(reshape_to(y, {2, 6, 4, 5}), Axes{0, 2, 1, 3}));
  f.add_result(reshape_to(y * 2.0, {12, 20}));
  check(contraction_candidate, f);
}

inline void contraction_fused_producers(const Check& check) {
  Function f;
  Value x = f.add_param(f32({20, 37}), "x"), w = f.add_param(f32({37, 70}), "w"),
        scale = f.add_param(f32({37}), "w_scale");
  f.add_result(ops::matmul(ops::sigmoid(x * broadcast_to(scale, x.shape())), w));
  check(contraction_candidate, f);
}

inline void contraction_weights_made_of_weights(const Check& check) {
  Function f;
  Value x = f.add_param(f32({20, 37}), "x"), w = f.add_param(f16({37, 30}), "w"),
        scale = f.add_param(f32({30}), "w_scale");
  Value weights = cast_to(w, DType::f32);
  f.add_result(ops::matmul(x, weights * broadcast_to(scale, weights.shape())));
  check(contraction_candidate, f);
}

inline void contraction_narrow_floats(const Check& check) {
  for (DType t : {DType::f16, DType::bf16}) {
    Function f;
    Value x = f.add_param({t, {20, 37}}, "x"), w = f.add_param({t, {37, 70}}, "w"),
          bias = f.add_param({t, {70}}, "w_bias");
    f.add_result(ops::relu(with_bias(ops::matmul(x, w), bias)));
    check(contraction_candidate, f, {.packed = t});
  }
}

inline void contraction_bytes(const Check& check) {
  for (DType t : {DType::i8, DType::u8})
    for (std::int64_t m : {1, 20}) {
      Function f;
      Value x = f.add_param({DType::u8, {m, 37}}, "x"), w = f.add_param({t, {37, 70}}, "w");
      f.add_result(dot_general(x, w, {}, {{1, 0}}, DType::i32));
      check(contraction_candidate, f, {.packed = t});
    }
}

// The weights are widened from a narrower dtype.
inline void contraction_widened_weights(const Check& check) {
  for (DType t : {DType::i8, DType::u8, DType::i16, DType::f16, DType::bf16}) {
    Function f;
    Value x = f.add_param(f32({20, 37}), "x"), w = f.add_param({t, {70, 37}}, "w");
    Value wide = is_float(t) ? w : cast_to(w, DType::i32);
    f.add_result(ops::matmul(x, cast_to(transpose_matrix(wide), DType::f32)));
    check(contraction_candidate, f, {.packed = t});
  }
  for (DType t : {DType::i32, DType::f32}) {  // not narrower than f32
    Function f;
    Value x = f.add_param(f32({20, 37}), "x"), w = f.add_param({t, {37, 70}}, "w");
    f.add_result(ops::matmul(x, cast_to(w, DType::f32)));
    check(contraction_candidate, f, {.packed = DType::f32});
  }
}

// Integers with scales: the integers are packed.
inline void contraction_dequantized_weights(const Check& check) {
  enum class Scale : std::uint8_t { one, column, block };
  for (Scale kind : {Scale::one, Scale::column, Scale::block})
    for (bool has_zero : {false, true})
      for (bool is_transposed : {false, true}) {
        // Block scales of a transposed weight would need gathers, so it is dequantized first.
        const bool is_packed = kind != Scale::block || !is_transposed;
        Function f;
        Value x = f.add_param(f32({20, 64}), "x"),
              w = f.add_param({DType::i8, is_transposed ? Shape{70, 64} : Shape{64, 70}}, "w");
        const int n = is_transposed ? 0 : 1;
        const Dims columns = is_transposed ? Dims{70, 1} : Dims{1, 70},
                   blocks = is_transposed ? Dims{70, 4} : Dims{4, 70};
        auto whole = [&](Value v) {
          if (kind != Scale::block) return broadcast_to(v, w.shape());
          Dims each = v.shape().dims;
          each.insert(each.begin() + (2 - n), Dim(16));
          return reshape_to(broadcast_to(unsqueeze(v, {2 - n}), Shape(each)), w.shape().dims);
        };
        const Dims of = kind == Scale::one ? Dims{} : kind == Scale::column ? columns : blocks;
        Value number = cast_to(w, DType::i32);
        if (has_zero)
          number =
              number - whole(cast_to(f.add_param({DType::i8, Shape(of)}, "w_zero"), DType::i32));
        Value scale = f.add_param({DType::f32, Shape(of)}, "w_scale");
        Value weights = cast_to(number, DType::f32) * whole(scale);
        if (is_transposed) weights = transpose_matrix(weights);
        f.add_result(ops::relu(ops::matmul(x, weights)));
        check(contraction_candidate, f, {.packed = is_packed ? DType::i8 : DType::f32});
      }
}

// The left operand reads the codes, too.
inline void contraction_codes_on_both_sides(const Check& check) {
  for (bool has_zero : {false, true}) {
    Function f;
    Value w = f.add_param({DType::i8, {40, 40}}, "w"), x = f.add_param(f32({40}), "x");
    Value number = cast_to(w, DType::f32);
    if (has_zero) number = number - 3.0;
    Value weights = number * broadcast_to(f.add_param(f32({1, 40}), "w_scale"), w.shape());
    f.add_result(ops::matmul(weights * broadcast_to(x, w.shape()), weights));
    check(contraction_candidate, f, {.packed = DType::i8});
  }
}

inline void contraction_other_numbers(const Check& check) {
  for (DType t : {DType::f64, DType::i32, DType::i64}) {
    Function f;
    Value x = f.add_param({t, {9, 37}}, "x"), w = f.add_param({t, {37, 21}}, "w");
    f.add_result(ops::matmul(x, w));
    check(contraction_candidate, f);
  }
}

inline void contraction_both_operands_at_run_time(const Check& check) {
  auto product = [](std::int64_t m, std::int64_t k, std::int64_t n) {
    Function f;
    f.add_result(ops::matmul(f.add_param(f32({m, k}), "x"), f.add_param(f32({k, n}), "y")));
    return f;
  };
  check(contraction_candidate, product(20, 37, 70), {.steps = 1});
  check(contraction_candidate, product(200, 200, 100), {.steps = 2, .prepared = false});
}

inline void contraction_attention_scores(const Check& check) {
  Function f;
  Value q = f.add_param(f32({2, 3, 17, 24}), "q"), k = f.add_param(f32({2, 3, 19, 24}), "k");
  Value scores = ops::matmul(q, transpose_by(k, Axes{0, 1, 3, 2}));
  f.add_result(scores * 0.2);
  check(contraction_candidate, f, {.steps = 2, .prepared = false});
}

inline void contraction_one_column(const Check& check) {
  Function f;
  Value w = f.add_param(f32({70, 37}), "w"), x = f.add_param(f32({37}), "x");
  f.add_result(ops::matmul(w, x));
  check(contraction_candidate, f);
}

inline void contraction_batch_known_at_run_time(const Check& check) {
  Function f;
  Dim n = Dim::symbol("n", 1, 100);
  Value x = f.add_param(f32({n, 5, 37}), "x"), w = f.add_param(f32({37, 70}), "w"),
        r = f.add_param(f32({n, 5, 70}), "r");
  f.add_result(ops::tanh(ops::matmul(x, w) + r));
  for (std::int64_t size : {1, 3, 8, 17}) check(contraction_candidate, f, {}, {{"n", size}});
}

inline void contraction_long_sums(const Check& check) {
  Function f;
  Value x = f.add_param(f32({20, 2500}), "x"), w = f.add_param(f32({2500, 40}), "w");
  f.add_result(ops::relu(ops::matmul(x, w)));
  f.add_result(ops::matmul(x, w));
  check(contraction_candidate, f);
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

// The group's function up to the convolution, with parameters x and w.
inline Value convolution(Function& f, const ConvCase& c,
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

// Weights are packed in their own dtype.
inline void check_conv(const Check& check, const ConvCase& c, Build build = convolution_candidate,
                       const std::map<std::string, std::int64_t>& sizes = {}) {
  Function f;
  Value y = convolution(f, c);
  Value bias = f.add_param({c.dtype, {c.out_channels}}, "w_bias"), r = f.add_param(y.type(), "r");
  f.add_result(ops::relu(with_bias(y, bias) + r));
  check(build, f, {.packed = c.dtype}, sizes);
}

inline void convolution_bias_residual_and_relu(const Check& check) {
  check_conv(check, {});
  check_conv(check, {.strides = {2, 2}, .high = {0, 1}, .out_channels = 33});
  check_conv(
      check,
      {.in = {50}, .window = {5}, .strides = {2}, .dilations = {1}, .low = {0}, .high = {4}});
  check_conv(check, {.in = {5, 6, 7},
                     .window = {2, 3, 1},
                     .strides = {1, 1, 1},
                     .dilations = {1, 1, 1},
                     .low = {1, 0, 0},
                     .high = {0, 1, 0},
                     .images = 2});
}

inline void convolution_groups_and_depthwise(const Check& check) {
  check_conv(check, {.groups = 2});
  check_conv(check, {.groups = 20, .in_channels = 20});
  check_conv(check, {.groups = 3, .in_channels = 3, .out_channels = 12});  // several channels each
}

inline void convolution_narrow_floats(const Check& check) {
  check_conv(check, {.dtype = DType::f16});
  check_conv(check, {.groups = 20, .in_channels = 20, .dtype = DType::f16});
  check_conv(check, {.dtype = DType::bf16});
  check_conv(check, {.groups = 2, .dtype = DType::bf16});
}

inline void convolution_single_pixels_are_a_contraction(const Check& check) {
  ConvCase c{.window = {1, 1}, .low = {0, 0}, .high = {0, 0}, .images = 2};
  check_conv(check, c, contraction_candidate);
  check_conv(check, c, convolution_candidate);
  c.images = Dim::symbol("n", 1, 9);
  check_conv(check, c, contraction_candidate, {{"n", 3}});
  c.dtype = DType::f16;
  check_conv(check, c, contraction_candidate, {{"n", 2}});
  c.strides = {2, 2};
  check_conv(check, c, convolution_candidate, {{"n", 2}});
}

inline void convolution_images_known_at_run_time(const Check& check) {
  check_conv(check, {.images = Dim::symbol("n", 1, 50)}, convolution_candidate, {{"n", 3}});
  check_conv(check, {.in = {Dim::symbol("h", 4, 90), 14}}, convolution_candidate, {{"h", 11}});
}

inline void convolution_fused_producer_and_two_results(const Check& check) {
  Function f;
  Value y = convolution(f, {.in_channels = 19}, [](Value x) { return ops::tanh(x * 0.5); });
  Value z = ops::sigmoid(y);
  f.add_result(y * z);
  f.add_result(z);
  check(convolution_candidate, f);
}

inline void convolution_channels_first_around_it(const Check& check) {
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

// ---- attention

inline void check_attention(const Check& check, const std::vector<Type>& operands, Attrs attrs,
                            Expect expect = {2, false},
                            const std::map<std::string, std::int64_t>& sizes = {}) {
  Function f;
  Values values;
  for (const Type& t : operands)
    values.push_back(f.add_param(t, cat(expect.prepared ? "w" : "x", values.size())));
  attrs.set("scale", 0.3);
  f.add_result(ops::attention(values, std::move(attrs)));
  check(attention_candidate, f, expect, sizes);
}

inline void attention_heads_that_share_keys(const Check& check) {
  check_attention(check, {f32({2, 4, 50, 12}), f32({2, 2, 140, 12}), f32({2, 2, 140, 21})}, {});
}

inline void attention_causal_with_mask_and_cap(const Check& check) {
  check_attention(check, {f32({2, 101, 9}), f32({2, 130, 9}), f32({2, 130, 16}), f32({130})},
                  {{"causal", Dims{29}}, {"softcap", 2.0}});
}

inline void attention_lengths_known_at_run_time(const Check& check) {
  const Dim n = Dim::symbol("n", 1, 4096), m = Dim::symbol("m", 1, 4096);
  check_attention(check, {f32({3, n, 8}), f32({3, m, 8}), f32({3, m, 8}), b1({n, m})},
                  {{"masked", -5.0}}, {2, false}, {{"n", 37}, {"m", 71}});
}

inline void attention_narrow_floats_over_known_keys(const Check& check) {
  check_attention(check, {f16({2, 20, 8}), f16({2, 33, 8}), f16({2, 33, 8})}, {}, {3, true});
}

struct AnchoredCase {
  std::string name;
  void (*run)(const Check&);
};

inline const std::vector<AnchoredCase>& anchored_cases() {
  static const std::vector<AnchoredCase> all = {
      {"ContractionDenseLayer", contraction_dense_layer},
      {"ContractionTransposedWeights", contraction_transposed_weights},
      {"ContractionLargeTransposedWeights", contraction_large_transposed_weights},
      {"ContractionRowsOfSeveralAxes", contraction_rows_of_several_axes},
      {"ContractionReshapedAndTransposedResults", contraction_reshaped_and_transposed_results},
      {"ContractionFusedProducers", contraction_fused_producers},
      {"ContractionWeightsMadeOfWeights", contraction_weights_made_of_weights},
      {"ContractionNarrowFloats", contraction_narrow_floats},
      {"ContractionBytes", contraction_bytes},
      {"ContractionWidenedWeights", contraction_widened_weights},
      {"ContractionDequantizedWeights", contraction_dequantized_weights},
      {"ContractionCodesOnBothSides", contraction_codes_on_both_sides},
      {"ContractionOtherNumbers", contraction_other_numbers},
      {"ContractionBothOperandsAtRunTime", contraction_both_operands_at_run_time},
      {"ContractionAttentionScores", contraction_attention_scores},
      {"ContractionOneColumn", contraction_one_column},
      {"ContractionBatchKnownAtRunTime", contraction_batch_known_at_run_time},
      {"ContractionLongSums", contraction_long_sums},
      {"ConvolutionBiasResidualAndRelu", convolution_bias_residual_and_relu},
      {"ConvolutionGroupsAndDepthwise", convolution_groups_and_depthwise},
      {"ConvolutionNarrowFloats", convolution_narrow_floats},
      {"ConvolutionSinglePixelsAreAContraction", convolution_single_pixels_are_a_contraction},
      {"ConvolutionImagesKnownAtRunTime", convolution_images_known_at_run_time},
      {"ConvolutionFusedProducerAndTwoResults", convolution_fused_producer_and_two_results},
      {"ConvolutionChannelsFirstAroundIt", convolution_channels_first_around_it},
      {"AttentionHeadsThatShareKeys", attention_heads_that_share_keys},
      {"AttentionCausalWithMaskAndCap", attention_causal_with_mask_and_cap},
      {"AttentionLengthsKnownAtRunTime", attention_lengths_known_at_run_time},
      {"AttentionNarrowFloatsOverKnownKeys", attention_narrow_floats_over_known_keys},
  };
  return all;
}

}  // namespace hone::test
