// Which reads of weights move to the start of a group, and that results stay the same.
#include "kernel/groups/read_weights.h"

#include <gtest/gtest.h>

#include "kernel/forms/forms.h"
#include "kernel/walk.h"
#include "ops/common.h"
#include "run.h"
#include "test/codegen/cases.h"

namespace hone::test {

namespace {

// Two groups of 32 threads with p0, the weight, p1, another operand, and p2, the result.
Kernel kernel_of(std::string_view body, int threads = 32) {
  std::string text = cat(R"(kernel k
p0: f32[4096] strides [1]
p1: f32[4096] strides [1]
p2: f32[4096] strides [1] written
chunks 2
grid loop:0 < 2
  group loop:1 < )",
                         threads, "\n");
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = body.find('\n', at);
    text += cat("    ", body.substr(at, end - at), "\n");
    at = end + 1;
  }
  return parse_kernel(text);
}

const Block& group_of(const Kernel& k) { return k.body.at(0).body.at(0).body; }

// The elements of p2.
std::vector<float> result_of(const Kernel& k) {
  std::vector<std::vector<float>> memory(3, std::vector<float>(4096));
  for (int i = 0; i < 4096; ++i) {
    memory[0][static_cast<std::size_t>(i)] = static_cast<float>(i % 97);
    memory[1][static_cast<std::size_t>(i)] = static_cast<float>(i % 3);
  }
  std::vector<std::span<std::byte>> spans;
  for (std::vector<float>& m : memory) spans.push_back(std::as_writable_bytes(std::span(m)));
  Interpreter(k).run(spans, {}, 0, 2, all_checks);
  return memory[2];
}

struct WeightRead {
  const char* what;
  bool moves;
  std::string_view body;
  int threads = 32;
};

constexpr WeightRead weight_reads[] = {
    {"a read", true, R"(%0 = load f32 p1[32*loop:0+loop:1]
%1 = load f32 p0[32*loop:0+loop:1]
%2 = mul %0 %1
p2[32*loop:0+loop:1] = %2
)"},
    {"a loop that can be unrolled", true, R"(var r0: f32 = f32(0)
for loop:2 < 4
  %0 = load f32 p0[32*loop:2+loop:1]
  r0 add= %0
p2[32*loop:0+loop:1] = r0
)"},
    {"a loop around it that it does not depend on", true, R"(var r0: f32 = f32(0)
for loop:2 < 100
  %0 = load f32 p0[loop:1]
  %1 = load f32 p1[loop:2]
  %2 = mul %0 %1
  r0 add= %2
p2[32*loop:0+loop:1] = r0
)"},
    {"vectors in a branch", true, R"(%0 = lt i64(loop:1) i64(7)
if %0
  for loop:2 < 3
    lanes loop:3 < 8
      %1 = load f32 p0[8*loop:1+64*loop:2+loop:3]
      p2[512*loop:0+24*loop:1+8*loop:2+loop:3] = %1
else
  p2[512*loop:0+480+loop:1] = f32(1)
)"},
    {"the other side of a branch", true, R"(%0 = lt i64(loop:1) i64(7)
if %0
  p2[32*loop:0+loop:1] = f32(1)
else
  %1 = load f32 p0[loop:1]
  p2[32*loop:0+loop:1] = %1
)"},
    {"a long loop", false, R"(var r0: f32 = f32(0)
for loop:2 < 9
  %0 = load f32 p0[32*loop:2+loop:1]
  r0 add= %0
p2[32*loop:0+loop:1] = r0
)"},
    {"more than registers hold", false, R"(var r0: f32 = f32(0)
unrolled loop:2 < 40
  lanes loop:3 < 8
    %0 = load f32 p0[8*loop:2+loop:3]
    p2[2048*loop:0+64*loop:1+loop:3] = %0
)"},
    {"threads that have no register to spare", false, R"(%0 = load f32 p0[1024*loop:0+loop:1]
p2[1024*loop:0+loop:1] = %0
)",
     1024},
    {"a branch that depends on memory", false, R"(%0 = load f32 p1[loop:1]
%1 = lt %0 f32(1)
if %1
  %2 = load f32 p0[loop:1]
  p2[32*loop:0+loop:1] = %2
)"},
    {"a place that depends on memory", false, R"(%0 = load f32 p1[loop:1]
%1 = cast i64 %0
var r0: i64 in 0..2 = %1
%2 = load f32 p0[reg:0]
p2[32*loop:0+loop:1] = %2
)"},
    {"two conditions", false, R"(%0 = lt i64(loop:1) i64(7)
if %0
  %1 = load f32 p0[loop:1]
  p2[32*loop:0+loop:1] = %1
else
  %2 = load f32 p0[loop:1]
  %3 = neg %2
  p2[32*loop:0+loop:1] = %3
)"},
    {"an intrinsic", false, R"(intrinsic short_powers
  %0 = load f32 p0[loop:1]
  %1 = exp %0
  p2[32*loop:0+loop:1] = %1
)"},
    {"one read that stays", false, R"(%0 = load f32 p0[loop:1]
p2[512*loop:0+loop:1] = %0
intrinsic short_powers
  %1 = load f32 p0[1+loop:1]
  %2 = exp %1
  p2[512*loop:0+32+loop:1] = %2
)"},
};

TEST(ReadWeights, MoveIfPlacesAndConditionsAreKnown) {
  for (const WeightRead& c : weight_reads) {
    SCOPED_TRACE(c.what);
    const Kernel before = kernel_of(c.body, c.threads);
    Kernel after = kernel_of(c.body, c.threads);
    read_weights_first(after, {true, false, false});
    check(after);
    SCOPED_TRACE(print(after));
    EXPECT_EQ(after.params[0].is_weight, c.moves);
    EXPECT_EQ(independent_statements(after, group_of(after)) > 0, c.moves);
    EXPECT_EQ(result_of(after), result_of(before));
    EXPECT_EQ(print(parse_kernel(print(after))), print(after));
    EXPECT_EQ(hash(after) == hash(before), !c.moves);
    // What another launch may write is read where it was.
    Kernel none = kernel_of(c.body, c.threads);
    read_weights_first(none, {false, false, false});
    EXPECT_EQ(hash(none), hash(before));
    EXPECT_EQ(independent_statements(none, group_of(none)), 0u);
  }
}

TEST(ReadWeights, NotInKernelsOfManyGroups) {
  Kernel k = kernel_of(weight_reads[0].body);
  k.chunks = 4096;
  k.body[0].extent = 4096;
  const Hash128 before = hash(k);
  read_weights_first(k, {true, false, false});
  EXPECT_EQ(hash(k), before);
}

// A matrix that registers hold is read first, and no longer prefetched; of a larger one only the
// bias is.
TEST(ReadWeights, ReplacePrefetchesOfWhatTheyRead) {
  TargetInfo target{.name = "groups"};
  target.group_threads = 1024, target.group_bytes = 200 << 10;
  target.overlaps_launches = true;
  for (const std::int64_t depth : {200, 1 << 14}) {
    Function f;
    const Value x = f.add_param(Type(DType::bf16, {1, depth}), "x"),
                w = f.add_param(Type(DType::bf16, {depth, 45}), "w"),
                b = f.add_param(Type(DType::bf16, {45}), "b");
    const Value y = ops::matmul(x, w);
    f.add_result(y + broadcast_to(b, y.shape()), "y");
    GroupSpec spec = spec_of(f);
    spec.param_is_weight = {false, true, true};
    const Candidate c = generated_candidates(spec, target).front();
    ASSERT_EQ(c.name, "rows");
    const Kernel& k = std::get<Kernel>(c.steps.at(0).what);
    SCOPED_TRACE(print(k));
    const auto parameter = [&](int of_group) -> const KernelParam& {
      for (std::size_t i = 0; i < c.steps[0].operands.size(); ++i)
        if (c.steps[0].operands[i].kind == Candidate::Operand::Kind::param &&
            c.steps[0].operands[i].index == of_group)
          return k.params[i];
      throw std::out_of_range("operand");
    };
    EXPECT_FALSE(parameter(0).is_weight);
    EXPECT_TRUE(parameter(1).is_weight && parameter(2).is_weight);
    bool fetches = false;
    for_each_statement(k.body, [&](const Stmt& s) { fetches |= s.kind == Stmt::Kind::fetch; });
    EXPECT_EQ(fetches, depth != 200);
    const std::vector<Array> inputs = {random_array(x.type(), 1), random_array(w.type(), 2),
                                       random_array(b.type(), 3)};
    const Array got = interpret_candidate(c, f, inputs, all_checks).at(0);
    const Comparison r = accept(got, evaluate_wide(f, inputs, Mode::strict).at(0),
                                evaluate_wide(f, inputs, Mode::wide).at(0));
    EXPECT_TRUE(r.ok) << r;
  }
}

}  // namespace

}  // namespace hone::test
