// The tiled attention and the one in parts, compiled and run, against the reference.
#include "kernel/tiles/attention.h"

#include <gtest/gtest.h>

#include <limits>

#include "anchored_cases.h"
#include "ref/compare.h"
#include "ref/evaluate.h"

namespace hone::test {

namespace {

using SizeMap = std::map<std::string, std::int64_t>;

constexpr double infinity = std::numeric_limits<double>::infinity();

Attrs scaled(double scale, Attrs attrs = {}) {
  attrs.set("scale", scale);
  return attrs;
}

Function attention_of(std::vector<Type> operands, Attrs attrs) {
  Function f;
  Values values;
  for (const Type& t : operands) values.push_back(f.add_param(t, cat("x", values.size())));
  f.add_result(ops::attention(values, std::move(attrs)), "y");
  return f;
}

std::optional<Candidate> in_parts(const GroupSpec& spec, const TargetInfo& target,
                                  const Tuning& tuning) {
  const auto all = kernel_forms(target);
  return std::ranges::find(all, "parts", &KernelForm::name)->build(spec, target, tuning);
}

std::string judge(const Function& f, std::span<const Array> inputs, std::span<const Array> got) {
  const std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::strict),
                          wide = evaluate_wide(f, inputs, Mode::wide);
  for (std::size_t i = 0; i < got.size(); ++i)
    if (Comparison c = accept(got[i], strict[i], wide[i]); !c) return cat("result ", i, ": ", c);
  return "";
}

// Compiles once and runs at several sizes: whole, in single chunks, and with gaps between elements.
void check(Build build, const Function& f, const std::vector<SizeMap>& all_sizes = {{}},
           const std::function<void(std::vector<Array>&)>& change = {}) {
  for (const std::string& target : llvm::targets()) {
    for (bool is_padded : {false, true}) {
      const GroupSpec spec = spec_of(f, is_padded);
      std::optional<Candidate> candidate = build(spec, cpu::target_info(target), {});
      ASSERT_TRUE(candidate) << print(f);
      CompiledCandidate compiled(*candidate, target);
      for (const SizeMap& sizes : all_sizes) {
        std::vector<Array> inputs = random_inputs(f, sizes);
        if (change) change(inputs);
        std::string trace = cat(target, is_padded ? " padded" : "");
        for (const auto& [name, size] : sizes) trace += cat(" ", name, "=", size);
        SCOPED_TRACE(trace);
        const RunOptions options{.target = target, .is_padded = is_padded};
        std::vector<Array> got = compiled.run(spec, inputs, options);
        ASSERT_EQ(judge(f, inputs, got), "") << print(f);
        std::vector<Array> parts = compiled.run(
            spec, inputs,
            {.target = target, .chunks_per_call = 1, .is_padded = is_padded, .backwards = true});
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_TRUE(std::ranges::equal(got[i].bytes(), parts[i].bytes())) << "result " << i;
      }
    }
  }
}

std::vector<SizeMap> lengths(std::initializer_list<std::int64_t> queries,
                             std::initializer_list<std::int64_t> keys) {
  std::vector<SizeMap> out;
  for (std::int64_t n : queries)
    for (std::int64_t m : keys) out.push_back({{"n", n}, {"m", m}});
  return out;
}

const Dim n = Dim::symbol("n", 0, 4096), m = Dim::symbol("m", 0, 4096);

struct Form {
  std::string name;
  std::vector<Type> operands;
  Attrs attrs;
};

std::vector<Form> forms() {
  auto t = [](DType dtype, Dims dims) { return Type(dtype, Shape(std::move(dims))); };
  auto f = [&](Dims dims) { return t(DType::f32, std::move(dims)); };
  return {
      {"plain", {f({2, n, 8}), f({2, m, 8}), f({2, m, 16})}, scaled(0.5)},
      {"odd_rows", {f({n, 5}), f({m, 5}), f({m, 19})}, scaled(1)},
      {"one_number", {f({3, n, 1}), f({3, m, 1}), f({3, m, 1})}, scaled(-2)},
      {"causal", {f({2, n, 6}), f({2, m, 6}), f({2, m, 8})}, scaled(0.4, {{"causal", Dims{0}}})},
      {"causal_with_past",
       {f({2, n, 6}), f({2, m, 6}), f({2, m, 8})},
       scaled(0.4, {{"causal", Dims{m - n}}})},
      {"shared_heads",
       {f({2, 6, n, 7}), f({2, 2, m, 7}), f({2, 2, m, 33})},
       scaled(0.3, {{"softcap", 1.5}})},
      {"mask", {f({2, 3, n, 8}), f({2, 3, m, 8}), f({2, 3, m, 8}), f({2, 1, n, m})}, scaled(0.5)},
      {"key_mask", {f({2, n, 8}), f({2, m, 8}), f({2, m, 8}), f({2, 1, m})}, scaled(0.5)},
      {"bool_mask",
       {f({2, n, 8}), f({2, m, 8}), f({2, m, 8}), t(DType::b1, {n, m})},
       scaled(0.5, {{"masked", -20.0}})},
      {"f16",
       {t(DType::f16, {n, 24}), t(DType::f16, {m, 24}), t(DType::f16, {m, 24}),
        t(DType::f16, {n, m})},
       scaled(0.2)},
      {"bf16",
       {t(DType::bf16, {2, n, 4}), t(DType::bf16, {2, m, 4}), t(DType::bf16, {2, m, 9})},
       scaled(0.2)},
  };
}

class AttentionForms : public ::testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(, AttentionForms, ::testing::ValuesIn(forms()),
                         [](const auto& info) { return info.param.name; });

TEST_P(AttentionForms, AgreesWithTheReference) {
  check(attention_candidate, attention_of(GetParam().operands, GetParam().attrs),
        lengths({0, 1, 6, 7, 33, 97, 200}, {0, 1, 15, 16, 31, 130, 257}));
}

TEST_P(AttentionForms, AgreesInParts) {
  check(in_parts, attention_of(GetParam().operands, GetParam().attrs),
        lengths({1, 7, 33}, {1, 16, 65}));
}

TEST(Attention, TakesEveryLengthUpTo70) {
  std::vector<SizeMap> all;
  for (std::int64_t i = 1; i <= 70; ++i) all.push_back({{"n", i}, {"m", 71 - i}});
  for (std::int64_t i = 1; i <= 70; ++i) all.push_back({{"n", i}, {"m", i}});
  check(attention_candidate,
        attention_of({f32({2, n, 13}), f32({2, m, 13}), f32({2, m, 11})}, scaled(0.3)), all);
}

TEST(Attention, KnowsSizes) {
  for (std::int64_t length : {1, 96, 100, 256}) {
    const Type x = f32({2, length, 32});
    check(attention_candidate, attention_of({x, x, x}, scaled(0.2)));
    check(attention_candidate, attention_of({x, x, x}, scaled(0.2, {{"causal", Dims{0}}})));
  }
}

TEST(Attention, TakesEveryTuning) {
  const Type q = f32({2, 130, 20}), k = f32({2, 300, 20});
  const Function f = attention_of({q, k, k}, scaled(0.3));
  const GroupSpec spec = spec_of(f);
  const std::vector<Array> inputs = random_inputs(f, {});
  for (const std::string& target : llvm::targets()) {
    const TargetInfo info = cpu::target_info(target);
    const std::vector<Tuning> space = attention_space(spec, info);
    EXPECT_GT(space.size(), 3u);
    for (const Tuning& tuning : space) {
      std::string trace = target;
      for (const auto& [name, number] : tuning) trace += cat(" ", name, "=", number);
      SCOPED_TRACE(trace);
      std::optional<Candidate> candidate = attention_candidate(spec, info, tuning);
      ASSERT_TRUE(candidate);
      const std::vector<Array> got =
          CompiledCandidate(*candidate, target).run(spec, inputs, {.target = target});
      EXPECT_EQ(judge(f, inputs, got), "");
    }
  }
}

// A fully masked row is NaN, as its softmax is; a row whose first keys are masked uses its other
// keys; an infinite score gives NaN.
TEST(Attention, TakesRowsOfExtremes) {
  const std::int64_t keys = 300;
  const Type x = f32({keys, 8});
  const Function f = attention_of({x, x, x, f32({keys, keys})}, scaled(0.5));
  check(attention_candidate, f, {{}}, [&](std::vector<Array>& inputs) {
    for (std::int64_t j = 0; j < keys; ++j) {
      inputs[3].set_real(5 * keys + j, -infinity);
      inputs[3].set_real(6 * keys + j, j < 290 ? -infinity : 0);
      inputs[3].set_real(7 * keys + j, j > 3 ? -infinity : 0);
      inputs[3].set_real(8 * keys + j, j == 200 ? infinity : 0);
      inputs[3].set_real(9 * keys + j, j == 200 ? std::numeric_limits<double>::quiet_NaN() : 0);
      inputs[3].set_real(10 * keys + j, -3e38);
      inputs[3].set_real(11 * keys + j, j == 250 ? 1e30 : 0);
    }
  });
}

TEST(Attention, TakesProducersAndConsumers) {
  Function f;
  Value q = f.add_param(f32({2, 3, 50, 12}), "q"), k = f.add_param(f32({2, 3, 12, 40}), "k"),
        v = f.add_param(f32({2, 40, 3, 12}), "v"), rest = f.add_param(f32({2, 50, 36}), "rest");
  Value y = ops::attention(Values{q * 2.0, transpose_matrix(k), transpose_by(v, Axes{0, 2, 1, 3})},
                           {{"scale", 0.25}});
  y = reshape_to(transpose_by(ops::tanh(y), Axes{0, 2, 1, 3}), {2, 50, 36});
  f.add_result(y + rest, "y");
  check(attention_candidate, f);
  check(in_parts, f);
}

TEST(Attention, RefusesWhatItCannotTake) {
  auto refuse = [](const Function& f) {
    EXPECT_FALSE(attention_candidate(spec_of(f), cpu::target_info("x86-64-v3"))) << print(f);
  };
  const Type wide(DType::f64, {4, 4});
  refuse(attention_of({wide, wide, wide}, scaled(1)));
  refuse(attention_of({f32({4, 1000}), f32({4, 1000}), f32({4, 8})}, scaled(1)));
  refuse(attention_of({f32({4, n}), f32({4, n}), f32({4, 8})}, scaled(1)));
}

// The scores are stored neither in scratch nor in temporaries.
TEST(Attention, MemoryGrowsWithTheLength) {
  std::vector<std::int64_t> bytes;
  for (std::int64_t length : {1024, 2048, 4096}) {
    const Type x = f32({8, length, 64});
    const Candidate c = attention_candidate(spec_of(attention_of({x, x, x}, scaled(0.125))),
                                            cpu::target_info("x86-64-v3"))
                            .value();
    std::int64_t all = 0;
    for (const Candidate::Temporary& t : c.temporaries) all += byte_count(t.type).number();
    bytes.push_back(all);
    for (const Candidate::Step& s : c.steps)
      EXPECT_LT(std::get<Kernel>(s.what).scratch_bytes.number(), 512 << 10);
  }
  EXPECT_EQ(bytes[1], 2 * bytes[0]);
  EXPECT_EQ(bytes[2], 2 * bytes[1]);
}

}  // namespace

}  // namespace hone::test
