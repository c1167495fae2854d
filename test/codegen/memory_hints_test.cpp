// Non-temporal stores and prefetched rows give the same numbers: at every address, in place of an
// operand, and with sizes known only at run time.
#include <gtest/gtest.h>

#include "cases.h"
#include "group_runner.h"
#include "kernel/nest/nest_candidate.h"

namespace hone::test {

namespace {

class MemoryHints : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, MemoryHints, ::testing::ValuesIn(llvm::targets()));

TargetInfo streaming_from(const std::string& target, std::int64_t bytes) {
  TargetInfo info = cpu::target_info(target);
  info.stream_bytes = bytes;
  return info;
}

std::string assembly_of(const Candidate& c, const std::string& target) {
  return assembly(std::get<Kernel>(c.steps[0].what), target);
}

bool streams(const std::string& code) {
  const bool stores = code.find("vmovnt") != std::string::npos;
  EXPECT_EQ(stores, code.find("sfence") != std::string::npos);
  return stores;
}

Function softmax_of(Dims dims, DType t = DType::f32) {
  Function f;
  f.add_result(ops::softmax(f.add_param(Type(t, Shape(dims)), "x"), {{"axis", 1}}), "y");
  return f;
}

}  // namespace

TEST_P(MemoryHints, EveryOperationMayPassTheCaches) {
  const TargetInfo info = streaming_from(GetParam(), 1);
  for (const harness::Case& c : as_codes(harness::all_cases())) {
    if (holds_control(c.function)) continue;
    EXPECT_EQ(harness::judge(c,
                             [&](const Function& f, std::span<const Array> inputs) {
                               GroupSpec spec = spec_of(f);
                               Candidate candidate = nest_candidate(spec, info);
                               return CompiledCandidate(candidate, GetParam())
                                   .run(spec, inputs, {.target = GetParam()});
                             }),
              "")
        << c.name << "\n"
        << print(c.function);
  }
}

TEST_P(MemoryHints, TheSameBitsAtEveryAddressAndInPlace) {
  for (DType t : {DType::f32, DType::f16, DType::f64})
    for (std::int64_t columns : {128, 77}) {
      Function f = softmax_of({9, columns}, t);
      GroupSpec spec = spec_of(f);
      Candidate usual = nest_candidate(spec, streaming_from(GetParam(), 1 << 30));
      Candidate past = nest_candidate(spec, streaming_from(GetParam(), 1));
      EXPECT_FALSE(streams(assembly_of(usual, GetParam())));
      EXPECT_TRUE(streams(assembly_of(past, GetParam())));
      std::vector<Array> inputs = {random_array(f.param(0).type(), 1)};
      const Array expected =
          CompiledCandidate(usual, GetParam()).run(spec, inputs, {.target = GetParam()})[0];
      CompiledCandidate compiled(past, GetParam());
      const std::span<const std::byte> x = inputs[0].bytes();
      for (std::size_t shift = 0; shift < 128; shift += static_cast<std::size_t>(byte_size(t))) {
        Array from = Array::zeros(DType::u8, {static_cast<std::int64_t>(x.size()) + 256});
        Array to = Array::zeros(DType::u8, {static_cast<std::int64_t>(x.size()) + 256});
        for (bool in_place : {false, true}) {
          std::byte* source = from.writable_bytes().data() + 64;
          if (in_place) source += shift;
          std::byte* result = in_place ? source : to.writable_bytes().data() + shift;
          std::ranges::copy(x, source);
          void* buffers[] = {source, result};
          compiled.launch(0, buffers, Sizes(f, inputs), {.target = GetParam()});
          EXPECT_TRUE(std::equal(result, result + x.size(), expected.bytes().data()))
              << t << " at " << shift << (in_place ? " in place" : "");
        }
      }
    }
}

TEST_P(MemoryHints, OnlyLargeResultsPassTheCaches) {
  auto streams_of = [&](const Function& f) {
    return streams(
        assembly_of(nest_candidate(spec_of(f), cpu::target_info(GetParam())), GetParam()));
  };
  EXPECT_FALSE(streams_of(softmax_of({128, 768})));
  EXPECT_TRUE(streams_of(softmax_of({4096, 1024})));
  EXPECT_FALSE(streams_of(softmax_of({Dim::symbol("n", 1, 64), 768})));
  EXPECT_TRUE(streams_of(softmax_of({Dim::symbol("n", 1, 1 << 16), 50257})));
}

TEST(MemoryHint, RowsOfTheNextTurnAreFetched) {
  Candidate c = nest_candidate(spec_of(softmax_of({128, 768})), cpu::target_info("x86-64-v4"));
  const std::string text = print(std::get<Kernel>(c.steps[0].what));
  EXPECT_NE(text.find("fetch p0["), std::string::npos) << text;
  EXPECT_NE(assembly_of(c, "x86-64-v4").find("prefetcht0"), std::string::npos);
}

}  // namespace hone::test
