// Candidates built around a contraction or a convolution, compiled and run, against the reference.
#include <gtest/gtest.h>

#include "anchored_cases.h"
#include "ref/compare.h"
#include "ref/evaluate.h"

namespace hone::test {

namespace {

void check(Build build, const Function& f, Expect expect,
           const std::map<std::string, std::int64_t>& sizes) {
  const GroupSpec spec = group_of(f);
  const std::vector<Array> inputs = random_inputs(f, sizes);
  const std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::strict),
                          wide = evaluate_wide(f, inputs, Mode::wide);
  for (const std::string& target : llvm::targets()) {
    SCOPED_TRACE(target + "\n" + print(f));
    std::optional<Candidate> candidate = build(spec, cpu::target_info(target), {});
    ASSERT_TRUE(candidate);
    std::string trace;
    ASSERT_EQ(candidate->steps.size(), expect.steps);
    ASSERT_EQ(candidate->steps[0].prepare, expect.prepared && expect.steps > 1);
    if (expect.packed) {
      ASSERT_EQ(candidate->temporaries.at(0).type.dtype, *expect.packed);
    }
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

class Anchored : public ::testing::TestWithParam<AnchoredCase> {};
INSTANTIATE_TEST_SUITE_P(, Anchored, ::testing::ValuesIn(anchored_cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Anchored, AgreesWithTheReference) { GetParam().run({check}); }

TEST(ContractionCandidate, PanelsTakeTheBytesOfTheirOperand) {
  for (DType t : {DType::bf16, DType::f16, DType::i8, DType::u8}) {
    Function f;
    Value x = f.add_param({t, {8, 64}}, "x"), w = f.add_param({t, {64, 100}}, "w");
    f.add_result(is_float(t) ? ops::matmul(x, w) : dot_general(x, w, {}, {{1, 0}}, DType::i32));
    for (const std::string& target : llvm::targets()) {
      const auto candidate = contraction_candidate(group_of(f), cpu::target_info(target));
      ASSERT_TRUE(candidate);
      const Type& panels = candidate->temporaries.at(0).type;
      const std::int64_t columns = panels.shape.dims.back().number();
      const std::int64_t padded = (100 + columns - 1) / columns * columns;
      EXPECT_EQ(byte_count(panels), Dim(64 * padded * byte_size(t))) << panels;
    }
  }
}

void refuse(Build build, const Function& f) {
  EXPECT_FALSE(build(group_of(f), cpu::target_info("x86-64-v3"), {})) << print(f);
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

// A residual in the memory of the result: each element is read before it is written, once.
void check_over_residual(Build build, const Function& f, std::size_t residual) {
  const GroupSpec spec = group_of(f);
  const std::vector<Array> inputs = random_inputs(f, {});
  for (const std::string& target : llvm::targets()) {
    std::optional<Candidate> candidate = build(spec, cpu::target_info(target), {});
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
