// Groups lowered to loop nests and compiled, against the reference: every operation, layouts,
// partitions of the chunks, sizes known at run time.
#include <gtest/gtest.h>

#include "../ops/harness.h"
#include "group_runner.h"
#include "kernel/lower.h"
#include "ops/common.h"

namespace hone::test {

namespace {

class Nests : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, Nests, ::testing::ValuesIn(llvm::targets()));

// Control flow is for the plan, not for kernels.
bool holds_control(const Function& f) {
  Function core = expand_composites(f);
  for (NodeId n : live_nodes(core))
    if (core.graph().op(n).kind == OpKind::control) return true;
  return false;
}

std::string verdict_of(const harness::Case& c, const RunOptions& options) {
  try {
    return harness::judge(c, [&](const Function& f, std::span<const Array> inputs) {
      return run_nest(f, inputs, options);
    });
  } catch (const std::exception& e) {
    return e.what();
  }
}

TEST_P(Nests, EveryOperationAgreesWithTheReference) {
  int checked = 0;
  for (const harness::Case& c : harness::all_cases()) {
    if (holds_control(c.function)) continue;
    EXPECT_EQ(verdict_of(c, {.target = GetParam()}), "") << c.name << "\n" << print(c.function);
    ++checked;
  }
  EXPECT_GT(checked, 400);
}

TEST_P(Nests, EveryCoreOperationIsTriedOrControl) {
  for (const Op* op : all_ops()) {
    if (!op->is_core()) continue;
    bool is_tried = false;
    for (const harness::Case& c : harness::cases_of(*op))
      is_tried = is_tried || !holds_control(c.function);
    EXPECT_NE(is_tried, op->kind == OpKind::control) << op->name;
  }
}

TEST(Nest, ControlIsRefusedByName) {
  for (const harness::Case& c : harness::cases_of(ops::while_loop)) {
    try {
      kernel_count(c.function);
      FAIL() << c.name;
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find("while_loop"), std::string::npos) << e.what();
    }
  }
}

// Operations whose kinds of lowering differ; layouts are the same for all others.
const Op* const kinds[] = {&ops::add,     &ops::select,        &ops::cast,    &ops::reshape,
                           &ops::pad,     &ops::transpose,     &ops::concat,  &ops::slice,
                           &ops::gather,  &ops::dynamic_slice, &ops::scatter, &ops::reduce_sum,
                           &ops::argmax,  &ops::reduce_window, &ops::sort,    &ops::cumulative,
                           &ops::softmax, &ops::layer_norm,    &ops::dot,     &ops::conv};

TEST_P(Nests, StridesMayLeaveRoom) {
  for (const Op* op : kinds)
    for (const harness::Case& c : harness::cases_of(*op))
      EXPECT_EQ(verdict_of(c, {.target = GetParam(), .is_padded = true}), "") << c.name << "\n"
                                                                              << print(c.function);
}

Array random_array(const Type& t, std::uint64_t seed, double low = -2, double high = 2) {
  std::mt19937_64 random(seed);
  return harness::filled(t, [&](DType d) { return harness::random_number(d, low, high, random); });
}

// Runs in one call, and chunk by chunk from the back: the bits must be equal, and right.
void check_partitions(const std::string& target, const Function& f, std::span<const Array> inputs,
                      bool is_chunked = true) {
  GroupSpec spec = spec_of(f);
  Candidate candidate = nest_candidate(spec, cpu_target_info(target));
  CompiledCandidate compiled(candidate, target);
  std::vector<Array> whole = compiled.run(spec, inputs, {.target = target});
  std::vector<Array> parts =
      compiled.run(spec, inputs, {.target = target, .chunks_per_call = 1, .backwards = true});
  std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::strict),
                    wide = evaluate_wide(f, inputs, Mode::wide);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_TRUE(whole[i] == parts[i]) << "result " << i;
    Comparison r = accept(whole[i], strict[i], wide[i]);
    EXPECT_TRUE(r.ok) << r;
  }
  if (!is_chunked) return;
  Sizes sizes(f, inputs);
  const Kernel& k = std::get<Kernel>(candidate.steps[0].what);
  EXPECT_GT(sizes(k.chunks), 1) << print(k);
}

struct Large {
  std::string name;
  std::vector<Type> params;
  std::function<Value(std::span<const Value>)> build;
  bool is_chunked = true;
};

std::vector<Large> large_functions() {
  Dim n = Dim::symbol("n", 0, 1 << 20), m = Dim::symbol("m", 1, 4096);
  auto square = [](std::span<const Value> x) { return x[0] * x[0] + 1.0; };
  auto softmax = [](std::span<const Value> x) { return ops::softmax(x[0], {{"axis", 1}}); };
  auto sum = [](int axis) {
    return [axis](std::span<const Value> x) { return reduce_axes(ops::reduce_sum, x[0], {axis}); };
  };
  auto add_column = [](std::span<const Value> x) {
    return x[0] + broadcast_to(x[1], x[0].shape());
  };
  auto swap = [](std::span<const Value> x) { return transpose_matrix(x[0]); };
  return {
      {"elementwise", {f32({301, 257})}, square},
      {"elementwise f16", {f16({301, 257})}, square},
      {"elementwise i8",
       {Type(DType::i8, {1001, 1003})},
       [](std::span<const Value> x) { return x[0] + x[0]; }},
      {"symbolic", {f32({n, 65})}, square},
      {"broadcast row", {f32({300, 129}), f32({129})}, add_column},
      {"broadcast column", {f32({300, 129}), f32({300, 1})}, add_column},
      {"broadcast short row", {f32({20000, 3}), f32({3})}, add_column},
      {"symbolic broadcast", {f32({n, m}), f32({m})}, add_column},
      {"transpose", {f32({311, 205})}, swap},
      {"permute",
       {f32({7, 40, 33, 17})},
       [](std::span<const Value> x) { return transpose_by(x[0], Axes{0, 2, 3, 1}); }},
      {"rows", {f32({211, 333})}, softmax},
      {"rows f16", {f16({211, 333})}, softmax},
      {"symbolic rows", {f32({n, m})}, softmax},
      {"columns", {f32({65, 700})}, sum(0)},
      {"row sums", {f32({700, 165})}, sum(1)},
      {"middle sums", {f32({40, 50, 60})}, sum(1)},
      {"softmax over channels", {f32({8, 21, 500})}, softmax},
      {"one long sum", {f32({1, 100003})}, sum(1), false},
      {"norm",
       {f32({150, 384}), f32({384}), f32({384})},
       [](std::span<const Value> x) {
         return ops::layer_norm(Values{x[0], x[1], x[2]}, {{"axis", 1}, {"epsilon", 1e-5}});
       }},
      {"pool",
       {f32({2, 16, 57, 43})},
       [](std::span<const Value> x) {
         return max_pool(x[0], {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, false});
       }},
      {"pool channels last",
       {f32({2, 57, 43, 16})},
       [](std::span<const Value> x) {
         return max_pool(x[0], {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, true});
       }},
      {"concat",
       {f32({50, 300}), f32({50, 211})},
       [](std::span<const Value> x) { return concat_values(x, 1); }},
      {"gather",
       {f32({100, 70}), i64({500})},
       [](std::span<const Value> x) { return ops::gather(Values{x[0], x[1]}, {{"axis", 0}}); }},
      {"dot",
       {f32({50, 70}), f32({70, 90})},
       [](std::span<const Value> x) { return ops::matmul(x[0], x[1]); }},
      {"sort",
       {f32({20, 1000})},
       [](std::span<const Value> x) { return ops::sort(x[0], {{"axis", 1}, {"descending", 1}}); }},
  };
}

// A type with its symbols replaced by sizes that end in no whole vector.
Type sized(Type t) {
  for (Dim& d : t.shape.dims)
    d = d.substitute([](const Dim& s) { return std::optional<Dim>(s.name() == "n" ? 203 : 117); });
  return t;
}

TEST_P(Nests, ChunksMayBeDividedInAnyWay) {
  for (const Large& l : large_functions()) {
    SCOPED_TRACE(l.name);
    Function f;
    Values params;
    std::vector<Array> inputs;
    for (const Type& t : l.params) {
      params.push_back(f.add_param(t, cat("x", inputs.size())));
      inputs.push_back(random_array(sized(t), inputs.size() + 1, -50, 50));
    }
    f.add_result(l.build(params), "y");
    check_partitions(GetParam(), f, inputs, l.is_chunked);
  }
}

TEST_P(Nests, NothingIsDoneForNoElements) {
  Dim n = Dim::symbol("n", 0, 100);
  Function f;
  Value x = f.add_param(f32({n, 4}), "x");
  f.add_result(x * 2.0, "y");
  f.add_result(reduce_axes(ops::reduce_sum, x, {0}), "sum");
  std::vector<Array> inputs = {Array::zeros(DType::f32, {0, 4})};
  std::vector<Array> got = run_nest(f, inputs, {.target = GetParam()});
  EXPECT_EQ(got[0].count(), 0);
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(got[1].real(i), 0);
}

// ---- how many kernels

TEST(Nest, RowsAreOneKernel) {
  auto kernels = [](const std::function<Value(Value)>& build) {
    Function f;
    f.add_result(build(f.add_param(f32({64, 256}), "x")), "y");
    return kernel_count(f);
  };
  EXPECT_EQ(kernels([](Value x) { return ops::softmax(x, {{"axis", 1}}); }), 1u);
  EXPECT_EQ(kernels([](Value x) { return ops::softmax(x, {{"axis", 0}}); }), 1u);
  EXPECT_EQ(kernels([](Value x) { return ops::gelu(x * 3.0 + 1.0); }), 1u);
  EXPECT_EQ(kernels([](Value x) {
              Value e = ops::exp(
                  x - broadcast_back(reduce_axes(ops::reduce_max, x, {1}), {1}, x.shape()));
              return e / broadcast_back(reduce_axes(ops::reduce_sum, e, {1}), {1}, x.shape());
            }),
            1u);
}

TEST(Nest, ResultsOfARowShareItsKernel) {
  Function f;
  Value x = f.add_param(f32({64, 256}), "x");
  Value total = reduce_axes(ops::reduce_sum, x, {1});
  f.add_result(x - broadcast_back(total, {1}, x.shape()), "y");
  f.add_result(total, "total");
  EXPECT_EQ(kernel_count(f), 1u);
}

// Computing the contraction again for each of the three stages would triple its cost.
TEST_P(Nests, SoftmaxOfAContractionComputesItOnce) {
  Function f;
  Value a = f.add_param(f32({9, 31}), "a"), b = f.add_param(f32({31, 20}), "b");
  f.add_result(ops::softmax(ops::matmul(a, b), {{"axis", 1}}), "y");
  EXPECT_EQ(kernel_count(f), 2u);
  std::vector<Array> inputs = {random_array(a.type(), 1), random_array(b.type(), 2)};
  check_partitions(GetParam(), f, inputs, false);
}

TEST_P(Nests, ConsumersOfASortReadItsResult) {
  Function f;
  Value x = f.add_param(f32({5, 40}), "x");
  Value sorted = ops::sort(x * 2.0, {{"axis", 1}, {"descending", 0}});
  f.add_result(sorted + 1.0, "y");
  f.add_result(slice_axis(sorted.result(1), 1, 0, 3), "top");
  std::vector<Array> inputs = {random_array(x.type(), 1)};
  check_partitions(GetParam(), f, inputs, false);
}

}  // namespace

}  // namespace hone::test
