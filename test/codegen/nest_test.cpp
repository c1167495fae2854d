// Groups lowered to loop nests and compiled, against the reference: every operation, layouts,
// partitions of the chunks, sizes known at run time.
#include <gtest/gtest.h>

#include "cases.h"
#include "group_runner.h"
#include "kernel/nest/nest_candidate.h"

namespace hone::test {

namespace {

class Nests : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, Nests, ::testing::ValuesIn(llvm::targets()));

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
  for (const harness::Case& c : as_codes(harness::all_cases())) {
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
    for (const harness::Case& c : as_codes(harness::cases_of(*op)))
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

TEST_P(Nests, StridesMayLeaveRoom) {
  for (const Op* op : kinds)
    for (const harness::Case& c : as_codes(harness::cases_of(*op)))
      EXPECT_EQ(verdict_of(c, {.target = GetParam(), .is_padded = true}), "") << c.name << "\n"
                                                                              << print(c.function);
}

// Runs in one call, and chunk by chunk from the back: the bits must be equal and correct.
void check_partitions(const std::string& target, const Function& f, std::span<const Array> inputs,
                      bool is_chunked = true) {
  GroupSpec spec = spec_of(f);
  Candidate candidate = nest_candidate(spec, cpu::target_info(target));
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

TEST_P(Nests, ChunksMayBeDividedInAnyWay) {
  for (const Large& l : large_functions()) {
    SCOPED_TRACE(l.name);
    check_partitions(GetParam(), l.function, l.inputs, l.is_chunked);
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

// Values are not narrowed, widened and narrowed again.
TEST_P(Nests, WhatIsCastForMemoryIsRoundedOnce) {
  Function f;
  f.add_result(cast_to(f.add_param(f32({4096}), "x") * 0.3, DType::f16), "y");
  const Candidate c = nest_candidate(spec_of(f), cpu::target_info(GetParam()));
  const std::string code = assembly(std::get<Kernel>(c.steps[0].what), GetParam());
  EXPECT_NE(code.find("vcvtps2ph"), std::string::npos) << code;
  EXPECT_EQ(code.find("vcvtph2ps"), std::string::npos) << code;
}

}  // namespace

}  // namespace hone::test
