// Attention from the graph to the plan: it is raised and forms one group, its memory grows with the
// length, and its numbers equal those of its three steps.
#include <set>

#include "ops/common.h"
#include "pass/raise.h"
#include "ref/evaluate.h"
#include "test/compile/models.h"

namespace hone {
namespace {

using namespace test;

Array random_array(std::vector<std::int64_t> dims, std::uint32_t seed) {
  Array a = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i) {
    seed = seed * 1664525 + 1013904223;
    a.set_real(i, static_cast<double>(seed >> 8) / (1 << 24) - 0.5);
  }
  return a;
}

Array weight(std::vector<std::int64_t> dims, double scale) {
  Array a = random_array(std::move(dims), 77);
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, a.real(i) * scale);
  return a;
}

// An attention layer as models write it: matrix products, scale, mask, softmax.
Value attention_spelled(Value x, std::int64_t heads, Value mask) {
  Graph& g = x.graph();
  const Dim length = x.shape()[0], width = x.shape()[1];
  const std::int64_t size = width.number() / heads;
  auto projected = [&] {
    Value y = ops::matmul(x, constant(g, weight({width.number(), width.number()}, 0.2)));
    return transpose_by(reshape_to(y, {length, heads, size}), Axes{1, 0, 2});
  };
  Value q = projected(), k = projected() * 0.5, v = projected() * 2.0;
  Value scores = ops::matmul(q, transpose_matrix(k)) / std::sqrt(static_cast<double>(size));
  scores = scores + broadcast_to(mask, scores.shape());
  Value y = ops::matmul(ops::softmax(scores, {{"axis", 2}}), v);
  y = reshape_to(transpose_by(y, Axes{1, 0, 2}), {length, width});
  return ops::matmul(y, constant(g, weight({width.number(), width.number()}, 0.1)));
}

Function transformer(std::int64_t length, int layers) {
  constexpr std::int64_t width = 48, heads = 4;
  Function f;
  Value x = f.add_param(f32({length, width}), "x"), mask = f.add_param(f32({1, length}), "mask");
  auto normed = [&](Value h) {
    Value row = constant(f.graph(), weight({width}, 2));
    return ops::layer_norm(std::vector<Value>{h, row, row}, {{"axis", 1}, {"epsilon", 1e-5}});
  };
  Value h = x;
  for (int i = 0; i < layers; ++i) {
    h = h + attention_spelled(normed(h), heads, mask);
    Value up =
        ops::gelu(ops::matmul(normed(h), constant(f.graph(), weight({width, 2 * width}, 0.2))));
    h = h + ops::matmul(up, constant(f.graph(), weight({2 * width, width}, 0.2)));
  }
  f.add_result(h, "y");
  return f;
}

Function plain_attention(std::int64_t length) {
  Function f;
  const Type t = f32({8, length, 64});
  Value q = f.add_param(t, "q"), k = f.add_param(t, "k"), v = f.add_param(t, "v");
  Value scores = ops::matmul(q, transpose_matrix(k)) * 0.125;
  f.add_result(ops::matmul(ops::softmax(scores, {{"axis", 2}}), v), "y");
  return f;
}

std::vector<std::string> group_names(const Plan& plan, std::string_view word) {
  std::vector<std::string> out;
  for (const GroupRecord& g : plan.main().variants.at(0).groups)
    if (g.name.find(word) != std::string::npos) out.push_back(g.name);
  return out;
}

TEST(CompileAttention, IsOneGroupInEachLayer) {
  EmptyCache cache;
  const Function f = transformer(40, 3);
  const Plan plan = compile({"transformer", {{{}, f}}, {}}, {.strategy = "cpu"});
  EXPECT_EQ(group_names(plan, "attention").size(), 3u);
  EXPECT_TRUE(group_names(plan, "softmax").empty());
  const std::vector<Array> inputs = {random_array({40, 48}, 3), random_array({1, 40}, 4)};
  std::unique_ptr<Session> session = session_of(std::make_shared<const Plan>(plan), 2);
  const std::vector<Array> got = session->run(inputs);
  const Wide strict = evaluate_wide(f, inputs, Mode::strict)[0],
             wide = evaluate_wide(f, inputs, Mode::wide)[0];
  EXPECT_TRUE(accept(got[0], strict, wide)) << accept(got[0], strict, wide);
}

TEST(CompileAttention, TakesMemoryThatGrowsWithTheLength) {
  EmptyCache cache;
  std::vector<std::int64_t> bytes;
  for (std::int64_t length : {1024, 2048, 4096}) {
    const Plan plan = compile({"attention", {{{}, plain_attention(length)}}, {}},
                              {.strategy = "cpu", .verification = Verification::none});
    EXPECT_EQ(plan.main().variants.at(0).groups.at(0).chosen, "attention");
    bytes.push_back(plan.main().variants.at(0).devices[0].arena_bytes.number());
  }
  std::cout << "arena at 1024, 2048, 4096: " << bytes[0] << ", " << bytes[1] << ", " << bytes[2]
            << " bytes\n";
  EXPECT_LE(bytes[1], 2 * bytes[0] + 4096);
  EXPECT_LE(bytes[2], 2 * bytes[1] + 4096);
  EXPECT_LE(bytes[2], 4 * 8 * 4096 * 64 * 4);
}

}  // namespace
}  // namespace hone
