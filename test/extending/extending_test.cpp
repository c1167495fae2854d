// The examples of docs/extending.md do what it says, and the document quotes them as they are.
#include "test/extending/extending.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "compile/compile.h"
#include "grad/gradients.h"
#include "ops/common.h"
#include "ops/expand.h"
#include "pass/rewrite.h"
#include "ref/compare.h"
#include "ref/evaluate.h"
#include "test/kernel/run.h"

namespace hone {
namespace {

Array line(const std::vector<float>& v) {
  return Array::of<float>(DType::f32, {static_cast<std::int64_t>(v.size())}, v);
}

Function of_one(const std::function<Value(Value)>& f) {
  Function out;
  out.add_result(f(out.add_param(f32({4}), "x")), "y");
  return out;
}

const std::vector<float> some = {-3, -0.25, 0, 1};

TEST(Extending, TheOperationMeansWhatItIsMadeOf) {
  const Function f = of_one([](Value x) { return extending::softsign(x); });
  verify(f);
  const Array y = evaluate(expand_composites(f), std::vector{line(some)}).at(0);
  for (std::int64_t i = 0; i < 4; ++i)
    EXPECT_NEAR(y.real(i), extending::softsign.real(some[static_cast<std::size_t>(i)]), 1e-7);
}

TEST(Extending, TheOperationHasADerivative) {
  Function f;
  const Value x = f.add_param(f32({4}), "x"), y = extending::softsign(x), one = constant_like(y, 1);
  f.add_result(gradients(std::span(&y, 1), std::span(&one, 1), std::span(&x, 1)).at(0), "dx");
  const Array dx = evaluate(f, std::vector{line(some)}).at(0);
  EXPECT_NEAR(dx.real(0), 1.0 / 16, 1e-6);
  EXPECT_NEAR(dx.real(3), 1.0 / 4, 1e-6);
}

TEST(Extending, TheRuleFires) {
  const RuleSet rules(extending::softsign_rules());
  const Function from = of_one([](Value x) { return extending::softsign(-x); }),
                 to = of_one([](Value x) { return -extending::softsign(x); });
  EXPECT_EQ(print(rewrite(from, rules)), print(to));
}

// A node that holds no graphs.
class NoBodies final : public onnx::Bodies {
  onnx::Body closed(const onnx::Graph&, const std::vector<Type>&,
                    const std::set<std::size_t>&) override {
    throw onnx::NotRead();
  }
  Values inlined(const onnx::Graph&, const Values&) override { throw onnx::NotRead(); }
  Dim new_size(std::int64_t, std::int64_t, std::string_view) override { return 0; }
  Dim measured(Value, const Dim&, std::string_view) override { throw onnx::NotRead(); }
  bool is_of_inputs(const Dim&) const override { return true; }
  std::optional<std::int64_t> stated_limit(std::string_view) const override { return {}; }
  std::optional<Value> named(std::string_view) override { return std::nullopt; }
  void ask_for_contents(Value) const override {}
};

TEST(Extending, TheOperatorIsImported) {
  const Function f = of_one([](Value x) {
    onnx::Node node;
    node.op = extending::shrink_import.op;
    onnx::TensorFiles files(nullptr);
    const onnx::Assumptions assumptions({});
    NoBodies bodies;
    std::int64_t turns = 0;
    const onnx::Place place{x.graph(), files, assumptions, bodies, 0, turns};
    onnx::NodeContext context(node, 21, {x}, place);
    const Values made = extending::shrink_import.import(context);
    context.check_all_read();
    return made.at(0);
  });
  const Array y = evaluate(f, std::vector{line(some)}).at(0);
  EXPECT_EQ(y.real(0), -3);
  EXPECT_EQ(y.real(1), 0);
  EXPECT_EQ(y.real(3), 1);
}

Function scaled(std::int64_t rows) {
  Function f;
  const Value x = f.add_param(f32({rows, 64}), "x"), b = f.add_param(f32({64}), "b");
  f.add_result(ops::relu(x * 2.0 + broadcast_to(b, x.shape())), "y");
  return f;
}

TEST(Extending, TheBuilderMakesKernelsThatAreRight) {
  const KernelForm& parts = extending::parts_builder;
  const Function f = scaled(32);
  const GroupSpec spec = test::spec_of(f);
  const std::vector<Tuning> space = parts.space(spec, {});
  ASSERT_EQ(space.size(), 2u);  // 4,096 elements are more than there are
  Array x = Array::zeros(DType::f32, {32, 64}), b = Array::zeros(DType::f32, {64});
  for (std::int64_t i = 0; i < x.count(); ++i) x.set_real(i, 0.125 * double(i % 41) - 2);
  for (std::int64_t i = 0; i < b.count(); ++i) b.set_real(i, 0.25 * double(i % 7) - 1);
  const std::vector<Array> inputs = {x, b};
  for (const Tuning& t : space) {
    const std::optional<Candidate> c = parts.build(spec, {}, t);
    const Kernel& k = std::get<Kernel>(c->steps.at(0).what);
    check(k);
    EXPECT_EQ(k.chunks, Dim(2048 / t[0].second));
    const Array y = test::interpret_candidate(*c, f, inputs, test::all_checks).at(0);
    EXPECT_TRUE(within(y, evaluate(f, inputs).at(0), 1e-6, 0)) << print(k);
  }
  EXPECT_FALSE(parts.build(test::spec_of(scaled(33)), {}, {}));
}

TEST(Extending, ThePlanOfTheBackendHoldsItsCode) {
  CompileOptions options;
  options.backend = &extending::text_backend;
  options.verification = Verification::none;
  options.cache = false;
  const Plan plan = compile({"scaled", {{{}, scaled(32)}}, {}}, options);
  ASSERT_EQ(plan.kernels.size(), 1u);
  const Binary& b = plan.binaries.at(plan.kernels[0].binary);
  EXPECT_EQ(b.target, "text");
  EXPECT_EQ(plan.main().variants[0].devices[0].target, "text");
  const std::string text(reinterpret_cast<const char*>(b.code.data()), b.code.size());
  EXPECT_EQ(print(parse_kernel(text)), text);
}

std::string text_of(const std::string& path) {
  std::ifstream in(std::string(HONE_SOURCE_DIR "/") + path);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

// A quote follows a line that ends in the file's path in backquotes and a colon.
TEST(Extending, TheDocumentQuotesTheFiles) {
  const std::string text = text_of("docs/extending.md"), open = "`:\n\n```cpp\n", close = "```\n";
  int quotes = 0;
  for (std::size_t at = 0; (at = text.find(open, at)) != text.npos; ++quotes) {
    const std::size_t name = text.rfind('`', at - 1) + 1, begin = at + open.size();
    const std::string path = text.substr(name, at - name);
    at = text.find(close, begin);
    EXPECT_EQ(text.substr(begin, at - begin), text_of(path)) << path;
  }
  EXPECT_GE(quotes, 5);
}

}  // namespace
}  // namespace hone
