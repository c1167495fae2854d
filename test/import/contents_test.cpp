// Contents of inputs that a node must know, sequences, loops, and functions that no core operation
// computes.
#include <cmath>

#include "test/import/support.h"

namespace hone {
namespace {

ModelBuilder reshape_by_input() {
  ModelBuilder b;
  b.input("x", DType::f32, {"2", "3"});
  b.input("shape", DType::i64, {"2"});
  b.node("Neg", {"shape"}, {"minus"});
  b.node("Neg", {"minus"}, {"again"});
  b.node("Reshape", {"x", "again"}, {"y"});
  b.output("y");
  return b;
}

TEST(Contents, AShapeThatIsAnInputIsReadAndRequired) {
  ModelBuilder b = reshape_by_input();
  const std::int64_t sizes[] = {3, -1}, others[] = {2, 3};
  ImportOptions options;
  options.contents = {{"shape", Array::from_ints(sizes)}};
  Function f = b.import(options).variants.at(0).function;
  EXPECT_EQ(f.result(0).type(), f32({3, 2}));
  const Array x = reals({2, 3}, {1, 2, 3, 4, 5, 6});
  // Without stated contents, each run determines the sizes.
  EXPECT_EQ(b.run({x, Array::from_ints(sizes)})[0].dims(), (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(b.run({x, Array::from_ints(others)})[0].dims(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(evaluate(f, std::vector{x, Array::from_ints(sizes)})[0],
            reals({3, 2}, {1, 2, 3, 4, 5, 6}));
  try {
    evaluate(f, std::vector{x, Array::from_ints(others)});
    FAIL() << "other contents were taken";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("input 'shape' has other values"), std::string::npos);
  }
}

TEST(Contents, WhatNothingAsksForStaysData) {
  ModelBuilder b;
  b.input("x", DType::i64, {"2"});
  b.node("Neg", {"x"}, {"y"});
  b.output("y");
  const std::int64_t given[] = {1, 2}, others[] = {3, 4};
  ImportOptions options;
  options.contents = {{"x", Array::from_ints(given)}};
  Function f = b.import(options).variants.at(0).function;
  EXPECT_FALSE(f.params()[0].required);
  EXPECT_EQ(evaluate(f, std::vector{Array::from_ints(others)})[0].integer(0), -3);
}

TEST(Contents, TheTextFormKeepsWhatIsRequired) {
  const std::int64_t sizes[] = {3, 2};
  ImportOptions options;
  options.contents = {{"shape", Array::from_ints(sizes)}};
  Function f = reshape_by_input().import(options).variants.at(0).function;
  Function again = parse(print(f), find_op);
  ASSERT_TRUE(again.params()[1].required);
  EXPECT_EQ(*again.params()[1].required, Array::from_ints(sizes));
}

TEST(Sequence, ElementsAreTakenAndPutTogether) {
  ModelBuilder b;
  b.input("x", DType::f32, {"4"});
  b.constant("one", Array::scalar_int(1, DType::i64));
  set_int(b.node("SplitToSequence", {"x"}, {"s"}), "axis", 0);
  b.node("SequenceErase", {"s", "one"}, {"t"});
  b.node("SequenceInsert", {"t", "x"}, {"u"});
  b.node("SequenceLength", {"u"}, {"n"});
  set_int(b.node("ConcatFromSequence", {"u"}, {"y"}), "axis", 0);
  b.output("y");
  b.output("n");
  std::vector<Array> out = b.run({reals({4}, {1, 2, 3, 4})});
  EXPECT_EQ(out[0], reals({7}, {1, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(out[1].integer(0), 4);
}

TEST(Sequence, ResultsAreTheirElements) {
  ModelBuilder b;
  b.input("x", DType::f32, {"2"});
  b.node("SplitToSequence", {"x"}, {"s"});
  b.output("s");
  Function f = b.import().variants.at(0).function;
  ASSERT_EQ(f.results().size(), 2u);
  EXPECT_EQ(f.results()[1].name, "s.1");
}

// Doubles x until it exceeds 100.
TEST(Loop, DataEndsIt) {
  ModelBuilder b;
  b.input("x", DType::f32, {});
  b.constant("limit", Array::scalar(100, DType::f32));
  b.constant("on", Array::scalar_int(1, DType::b1));
  onnx_pb::Graph& g = set_graph(b.node("Loop", {"", "on", "x"}, {"y"}), "body");
  ModelBuilder::fill(g.add_input(), "turn", DType::i64, {});
  ModelBuilder::fill(g.add_input(), "go", DType::b1, {});
  ModelBuilder::fill(g.add_input(), "v", DType::f32, {});
  ModelBuilder::add(g, "Add", {"v", "v"}, {"w"});
  ModelBuilder::add(g, "Less", {"w", "limit"}, {"next"});
  g.add_output()->set_name("next");
  g.add_output()->set_name("w");
  b.output("y");
  EXPECT_EQ(b.run({reals({}, {3})})[0].real(0), 192);
}

// Running sums over 3 iterations are unrolled; over 40 they are a loop. Both give the same.
TEST(Loop, ManyTurnsAreALoop) {
  for (std::int64_t turns : {3, 40}) {
    ModelBuilder b;
    b.input("x", DType::f32, {"2"});
    b.constant("turns", Array::scalar_int(turns, DType::i64));
    onnx_pb::Graph& g = set_graph(b.node("Loop", {"turns", "", "x"}, {"y", "all"}), "body");
    ModelBuilder::fill(g.add_input(), "turn", DType::i64, {});
    ModelBuilder::fill(g.add_input(), "go", DType::b1, {});
    ModelBuilder::fill(g.add_input(), "v", DType::f32, {"2"});
    ModelBuilder::add(g, "Identity", {"go"}, {"next"});
    ModelBuilder::add(g, "Add", {"v", "x"}, {"w"});
    for (const char* name : {"next", "w", "w"}) g.add_output()->set_name(name);
    b.output("y");
    b.output("all");
    std::vector<Array> out = b.run({reals({2}, {1, 2})});
    const auto n = static_cast<double>(turns);
    EXPECT_EQ(numbers_of(out[0]), (std::vector<double>{n + 1, 2 * (n + 1)}));
    EXPECT_EQ(out[1].dims(), (std::vector<std::int64_t>{turns, 2}));
    EXPECT_EQ(out[1].real(2 * turns - 1), 2 * (n + 1));
  }
}

struct Reference {
  const char* op;
  double (*f)(double);
  double low, high;
};

TEST(Functions, AgreeWithTheLibraryOfC) {
  const Reference all[] = {
      {"Tan", std::tan, -20, 20},       {"Asin", std::asin, -1, 1},    {"Acos", std::acos, -1, 1},
      {"Atan", std::atan, -50, 50},     {"Sinh", std::sinh, -80, 80},  {"Cosh", std::cosh, -80, 80},
      {"Asinh", std::asinh, -1e6, 1e6}, {"Acosh", std::acosh, 1, 1e6}, {"Atanh", std::atanh, -1, 1},
  };
  constexpr int n = 2001;
  for (const Reference& r : all) {
    ModelBuilder b;
    b.input("x", DType::f64, {std::to_string(2 * n)});
    b.node(r.op, {"x"}, {"y"});
    b.output("y");
    Array x = Array::zeros(DType::f64, {2 * n});
    for (int i = 0; i < n; ++i) {
      x.set_real(i, r.low + (r.high - r.low) * i / (n - 1));
      // Dense near 0, if the range contains it, over many powers of two.
      const double tiny = std::ldexp(i % 2 ? 1.5 : -1.25, -i % 60);
      x.set_real(n + i, std::fmin(std::fmax(tiny, r.low), r.high));
    }
    Array y = b.run({x})[0];
    for (int i = 0; i < 2 * n; ++i) {
      const double want = r.f(x.real(i)), got = y.real(i);
      if (std::isinf(want)) {
        EXPECT_EQ(got, want) << r.op << "(" << x.real(i) << ")";
      } else {
        EXPECT_NEAR(got, want, 4e-15 * std::fabs(want)) << r.op << "(" << x.real(i) << ")";
      }
    }
  }
}

}  // namespace
}  // namespace hone
