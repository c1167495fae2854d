// The calls that are proposed for NVIDIA's libraries. Needs no GPU, except where a test says so.
#include "backend/backend.h"
#include "compile/compile.h"
#include "ops/common.h"
#include "pass/precision.h"
#include "ref/enclosure.h"
#include "test/backend/conformance.h"
#include "test/ops/harness.h"
#include "verify/sample.h"

#if __has_include(<nvrtc.h>)
namespace hone::test {
namespace {

// The library's first proposal for the function as one group: its function, its nonzero settings,
// and whether a kernel follows. `weights`: the indices of constant parameters.
std::string proposed(const Function& f, std::string_view library,
                     std::vector<std::size_t> weights = {}) {
  GroupSpec spec{f, {}, {}, std::vector<bool>(f.params().size(), false)};
  spec.is_aligned = true;
  for (const Function::Param& p : f.params())
    spec.param_strides.push_back(dense_strides(p.value.shape()));
  for (const Function::Result& r : f.results())
    spec.result_strides.push_back(dense_strides(r.value.shape()));
  for (std::size_t w : weights) spec.param_is_weight[w] = true;
  for (const Proposal& p : backend("cuda").target("sm_90")->candidates(spec)) {
    if (p.library != library) continue;
    std::string out = std::get<std::string>(p.candidate.steps[0].what);
    for (const auto& [name, value] : p.candidate.steps[0].settings)
      if (value != 0) out += cat(" ", name, value == 1 ? "" : cat("=", value));
    return cat(out, p.candidate.steps.size() > 1 ? ", kernel" : "");
  }
  return "nothing";
}

Type halves(Shape s) { return Type(DType::f16, std::move(s)); }

struct Attended {
  DType dtype = DType::f16;
  std::int64_t batch = 1, heads = 4, shared = 4, queries = 64, keys = 64, depth = 64;
  std::optional<std::int64_t> causal = {};
  std::optional<Shape> mask = {};
  DType mask_dtype = DType::f16;
};

Function attended(const Attended& a) {
  Function f;
  const auto param = [&](std::int64_t heads, std::int64_t length, const char* name) {
    return f.add_param(Type(a.dtype, Shape{a.batch, heads, length, a.depth}), name);
  };
  Values operands = {param(a.heads, a.queries, "q"), param(a.shared, a.keys, "k"),
                     param(a.shared, a.keys, "v")};
  if (a.mask) operands.push_back(f.add_param(Type(a.mask_dtype, *a.mask), "mask"));
  Attrs attrs{{"scale", 0.125}};
  if (a.causal) attrs.set("causal", Dims{Dim(*a.causal)});
  f.add_result(ops::attention(operands, attrs), "y");
  return f;
}

TEST(CudaLibrary, OperandsOfLibrariesAreAligned) {
  Function f;
  f.add_result(ops::matmul(f.add_param(halves({64, 64}), "x"), f.add_param(halves({64, 64}), "w")),
               "y");
  GroupSpec spec{f, {{64, 1}, {64, 1}}, {{64, 1}}, {false, false}};
  for (const bool is_aligned : {false, true}) {
    spec.is_aligned = is_aligned;
    int calls = 0;
    for (const Proposal& p : backend("cuda").target("sm_90")->candidates(spec))
      calls += !p.library.empty();
    EXPECT_EQ(calls > 0, is_aligned);
  }
}

TEST(CudaLibrary, CudnnAttendsToKnownSizesOfHalves) {
  const std::string scaled = "cudnn.attention scale_bits=1040187392";
  EXPECT_EQ(proposed(attended({}), "cudnn"), scaled);
  EXPECT_EQ(proposed(attended({.dtype = DType::bf16, .shared = 1}), "cudnn"), scaled);
  EXPECT_EQ(proposed(attended({.causal = 0}), "cudnn"), scaled + " causal");
  EXPECT_EQ(proposed(attended({.keys = 80, .causal = 16}), "cudnn"),
            scaled + " causal causal_offset=16");
  EXPECT_EQ(proposed(attended({.mask = Shape{64, 64}}), "cudnn"), scaled + " mask");
  EXPECT_EQ(proposed(attended({.dtype = DType::f32}), "cudnn"), "nothing");
  EXPECT_EQ(proposed(attended({.mask = Shape{64, 64}, .mask_dtype = DType::b1}), "cudnn"),
            "nothing");
  Function any_length;
  const Type t = halves({1, 4, Dim::symbol("n", 1, 512), 64});
  const Value q = any_length.add_param(t, "q"), k = any_length.add_param(t, "k"),
              v = any_length.add_param(t, "v");
  any_length.add_result(ops::attention(Values{q, k, v}, {{"scale", 0.125}}), "y");
  EXPECT_EQ(proposed(any_length, "cudnn"), "nothing") << "each length would be compiled";
}

// The proposal's function states exactly what the library rounds: a result computed from rounded
// weights lies in its enclosure, not in that of the group, and no other number does.
TEST(CudaLibrary, CudnnStatesThatItRoundsWeights) {
  const Function f = attended({.heads = 1, .shared = 1, .queries = 8, .keys = 8});
  GroupSpec spec{f, {}, {}, std::vector<bool>(f.params().size(), false)};
  spec.is_aligned = true;
  spec.is_aligned = true;
  for (const Function::Param& p : f.params())
    spec.param_strides.push_back(dense_strides(p.value.shape()));
  spec.result_strides.push_back(dense_strides(f.result(0).shape()));
  int stated = 0, outside = 0;
  for (const Proposal& p : backend("cuda").target("sm_90")->candidates(spec)) {
    EXPECT_EQ(p.rounded.has_value(), p.library == "cudnn");
    if (!p.rounded) continue;
    ++stated;
    std::vector<Array> inputs;
    for (const Function::Param& param : f.params())
      inputs.push_back(sample_array(param.value.type(), {}, Fill::random, inputs.size()));
    const Wide computed = evaluate_wide(*p.rounded, inputs, Mode::wide).at(0);
    const Enclosure group = enclose(f, inputs).at(0), library = enclose(*p.rounded, inputs).at(0);
    for (std::size_t i = 0; i < computed.reals.size(); ++i) {
      const auto lies_in = [&](const Enclosure& e, double x) {
        return round_real(DType::f16, e.low.reals[i]) <= x &&
               x <= round_real(DType::f16, e.high.reals[i]);
      };
      const double y = round_real(DType::f16, computed.reals[i]);
      EXPECT_TRUE(lies_in(library, y)) << i;
      outside += !lies_in(group, y);
      EXPECT_FALSE(lies_in(library, y + 0x1p-6)) << i;
    }
  }
  EXPECT_EQ(stated, 2);
  EXPECT_GT(outside, 0) << "the statement changes nothing";
}

Function convolved(DType t, const std::function<Value(Value y, Value bias, Value other)>& follow,
                   bool is_tf32 = false) {
  Function f;
  const Value x = f.add_param(Type(t, {2, 8, 8, 16}), "x"),
              w = f.add_param(Type(t, {3, 3, 16, 32}), "w"),
              bias = f.add_param(Type(t, {32}), "bias"),
              other = f.add_param(Type(t, {2, 4, 4, 32}), "other");
  Attrs attrs{{"strides", Dims{2, 2}},     {"dilations", Dims{1, 1}},
              {"pads_low", Dims{1, 1}},    {"pads_high", Dims{1, 1}},
              {"groups", std::int64_t{1}}, {"channels_last", std::int64_t{1}}};
  if (is_tf32) attrs.set("mode", std::string("tf32"));
  const Value y = ops::conv(Values{x, w}, attrs);
  f.add_result(follow(y, broadcast_to(bias, y.shape()), other), "y");
  return f;
}

TEST(CudaLibrary, CudnnConvolvesWithWhatFollows) {
  const std::string conv =
      "cudnn.conv channels_last groups strides0=2 strides1=2 dilations0 dilations1 pads_low0 "
      "pads_low1 pads_high0 pads_high1";
  const auto all = [](Value y, Value bias, Value other) { return ops::relu(y + bias + other); };
  EXPECT_EQ(proposed(convolved(DType::f16, all), "cudnn", {1}), conv + " bias residual relu");
  EXPECT_EQ(proposed(convolved(DType::f16, all), "cudnn"), "nothing") << "weights are packed once";
  const auto tanh = [](Value y, Value bias, Value) { return ops::tanh(y + bias); };
  EXPECT_EQ(proposed(convolved(DType::bf16, tanh), "cudnn", {1}), conv + " bias, kernel");
  const auto none = [](Value y, Value, Value) { return y; };
  EXPECT_EQ(proposed(convolved(DType::f32, none), "cudnn", {1}), "nothing");
  EXPECT_EQ(proposed(convolved(DType::f32, none, true), "cudnn", {1}), conv + " tf32");
}

// tf32 is used only where it was requested; kernels round the inputs before the call.
TEST(CudaLibrary, Tf32IsForMarkedProductsAlone) {
  Function f;
  const Value x = f.add_param(f32({32, 64}), "x"), w = f.add_param(f32({64, 32}), "w");
  f.add_result(ops::matmul(x, w), "y");
  EXPECT_EQ(proposed(f, "cublaslt"), "cublaslt.matmul");
  const Function marked = with_precision(f, Precision::tf32);
  Function product;
  for (NodeId n : live_nodes(marked))
    if (const Value v(&marked.graph(), n); v.is(ops::matmul)) {
      const Value a = product.add_param(v.operand(0).type(), "a"),
                  b = product.add_param(v.operand(1).type(), "b");
      product.add_result(ops::matmul(Values{a, b}, v.attrs()), "y");
    }
  EXPECT_EQ(proposed(product, "cublaslt"), "cublaslt.matmul tf32");
}

// Needs a GPU with cuDNN: compiling checks each call against the reference.
void expect_computed(const Function& f, const char* what) {
  CompileOptions o{.strategy = "cudnn", .backend = &backend("cuda")};
  o.cache = false;
  const Plan plan = compile({"test", {{{}, f}}, {}}, o);
  const auto calls = std::ranges::count_if(plan.main().variants[0].steps, [](const Step& s) {
    return s.kind == Step::Kind::library && s.name.starts_with("cudnn.");
  });
  EXPECT_EQ(calls, 1) << what << ": cuDNN was not used";
}

TEST(CudaLibrary, CudnnComputesWhatTheReferenceSays) {
  if (device_count("cuda") == 0) GTEST_SKIP() << "this machine has no GPU";
  if (const std::string why = open_device("cuda")->why_missing("cudnn"); !why.empty())
    GTEST_SKIP() << "NOTHING WAS TESTED: " << why;
  for (const std::int64_t length : {1, 2, 63, 64, 65, 127, 128, 200, 513}) {
    const std::string what = cat("attention of ", length);
    expect_computed(attended({.queries = length, .keys = length}), what.c_str());
    expect_computed(attended({.dtype = DType::bf16,
                              .shared = 2,
                              .queries = length,
                              .keys = length,
                              .depth = 128,
                              .causal = 0}),
                    what.c_str());
    expect_computed(attended({.queries = length, .keys = length + 40, .mask = Shape{length + 40}}),
                    what.c_str());
  }
  const auto weights = [&](DType t, std::vector<std::int64_t> dims) {
    Array w = Array::zeros(t, std::move(dims));
    for (std::int64_t i = 0; i < w.count(); ++i) w.set_real(i, 0.125 * ((i % 7) - 3));
    return w;
  };
  for (const DType t : {DType::f16, DType::bf16}) {
    Function f;
    const Value x = f.add_param(Type(t, {2, 16, 9, 9}), "x"),
                other = f.add_param(Type(t, {2, 32, 9, 9}), "other");
    const Dims ones = {1, 1};
    const Value y = ops::conv(Values{x, constant(f.graph(), weights(t, {32, 16, 3, 3}))},
                              {{"strides", ones},
                               {"dilations", ones},
                               {"pads_low", ones},
                               {"pads_high", ones},
                               {"groups", std::int64_t{1}},
                               {"channels_last", std::int64_t{0}}});
    const Value bias = constant(f.graph(), weights(t, {32, 1, 1}));
    f.add_result(ops::relu(y + broadcast_to(bias, y.shape()) + other), "y");
    expect_computed(f, "convolution");
  }
}

}  // namespace
}  // namespace hone::test
#endif
