// Sequences whose length depends on sizes or data: loops append to them, axes are split into them.
#include <functional>

#include "one_node.h"

namespace hone {
namespace {

using Integers = std::vector<std::int64_t>;

// A Loop whose body appends row i of x to the sequence "s", then what `more` adds to "t".
ModelBuilder appending_loop(const std::vector<std::string>& rows, const char* start,
                            const std::function<void(onnx_pb::Graph&)>& more = {}) {
  ModelBuilder b;
  b.input("x", DType::f32, rows);
  b.input("n", DType::i64, {});
  b.node("SequenceEmpty", {}, {"none"});
  b.node("SequenceConstruct", {"first"}, {"one"});
  b.constant("first", reals({2}, {7, 8}));
  onnx_pb::Node& loop = b.node("Loop", {"n", "", start}, {"sequence"});
  onnx_pb::Graph& g = set_graph(loop, "body");
  ModelBuilder::fill(g.add_input(), "i", DType::i64, {});
  ModelBuilder::fill(g.add_input(), "on", DType::b1, {});
  g.add_input()->set_name("s");
  set_int(ModelBuilder::add(g, "Gather", {"x", "i"}, {"row"}), "axis", 0);
  ModelBuilder::add(g, "SequenceInsert", {"s", "row"}, {"t"});
  if (more)
    more(g);
  else
    ModelBuilder::add(g, "Identity", {"t"}, {"u"});
  ModelBuilder::add(g, "Identity", {"on"}, {"go"});
  for (const char* name : {"go", "u"}) g.add_output()->set_name(name);
  return b;
}

void add_outputs_of_sequence(ModelBuilder& b) {
  b.constant("last", Array::scalar_int(-1, DType::i64));
  set_int(b.node("ConcatFromSequence", {"sequence"}, {"joined"}), "axis", 0);
  onnx_pb::Node& stack = b.node("ConcatFromSequence", {"sequence"}, {"stacked"});
  set_int(stack, "axis", 1);
  set_int(stack, "new_axis", 1);
  b.node("SequenceLength", {"sequence"}, {"length"});
  b.node("SequenceAt", {"sequence", "last"}, {"end"});
  for (const char* name : {"joined", "stacked", "length", "end"}) b.output(name);
}

TEST(OpenSequences, ALoopAppends) {
  ModelBuilder b = appending_loop({"rows", "2"}, "none");
  add_outputs_of_sequence(b);
  const Array x = counting({40, 2});
  for (const std::int64_t n : {1, 3, 40}) {
    const std::vector<Array> y = b.run({x, Array::scalar_int(n, DType::i64)});
    EXPECT_EQ(y[0].dims(), Integers{2 * n});
    EXPECT_EQ(y[1].dims(), (Integers{2, n}));
    EXPECT_EQ(y[2].integer(0), n);
    EXPECT_EQ(y[3], reals({2}, {static_cast<float>(2 * n - 2), static_cast<float>(2 * n - 1)}));
    for (std::int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(y[0].real(2 * i + 1), 2 * i + 1);
      EXPECT_EQ(y[1].real(n + i), 2 * i + 1);
    }
  }
}

TEST(OpenSequences, BehindOtherElements) {
  ModelBuilder b = appending_loop({"rows", "2"}, "one", [](onnx_pb::Graph& g) {
    ModelBuilder::add(g, "Neg", {"row"}, {"less"});
    ModelBuilder::add(g, "SequenceInsert", {"t", "less"}, {"u"});
  });
  add_outputs_of_sequence(b);
  const std::vector<Array> y = b.run({counting({2, 2}), Array::scalar_int(2, DType::i64)});
  EXPECT_EQ(y[0], reals({10}, {7, 8, 0, 1, -0.0f, -1, 2, 3, -2, -3}));
  EXPECT_EQ(y[2].integer(0), 5);
}

TEST(OpenSequences, SlicesOfAnOpenAxis) {
  for (const bool keeps : {false, true}) {
    ModelBuilder b;
    b.input("x", DType::f32, {"2", "n"});
    b.input("k", DType::i64, {});
    onnx_pb::Node& split = b.node("SplitToSequence", {"x"}, {"s"});
    set_int(split, "axis", 1);
    set_int(split, "keepdims", keeps);
    b.node("SequenceAt", {"s", "k"}, {"y"});
    b.node("SequenceInsert", {"s", "y"}, {"longer"});
    b.node("SequenceLength", {"longer"}, {"length"});
    b.output("y");
    b.output("length");
    const auto at = [&](std::int64_t k) {
      return b.run({counting({2, 3}), Array::scalar_int(k, DType::i64)});
    };
    const Integers dims = keeps ? Integers{2, 1} : Integers{2};
    EXPECT_EQ(at(1)[0], reals(dims, {1, 4}));
    EXPECT_EQ(at(-1)[0], reals(dims, {2, 5}));
    EXPECT_EQ(at(0)[1].integer(0), 4);
    EXPECT_THROW(at(3), UserError);
    EXPECT_THROW(at(-4), UserError);
  }
}

// Each element is computed from the one before it.
TEST(OpenSequences, ALoopReadsWhatItCarries) {
  ModelBuilder b = appending_loop({"rows", "2"}, "one", [](onnx_pb::Graph& g) {
    ModelBuilder::fill(g.add_initializer(), "before", Array::scalar_int(-2, DType::i64));
    ModelBuilder::add(g, "SequenceAt", {"t", "before"}, {"earlier"});
    ModelBuilder::add(g, "Add", {"earlier", "row"}, {"sum"});
    ModelBuilder::add(g, "SequenceInsert", {"t", "sum"}, {"u"});
  });
  add_outputs_of_sequence(b);
  for (const std::int64_t n : {0, 1, 3, 40}) {
    const std::vector<Array> y = b.run({counting({40, 2}), Array::scalar_int(n, DType::i64)});
    ASSERT_EQ(y[0].dims(), Integers{2 + 4 * n});
    EXPECT_EQ(y[2].integer(0), 1 + 2 * n);
    double sum = 7;
    for (std::int64_t i = 0; i < n; ++i) {
      sum += static_cast<double>(2 * i);
      EXPECT_EQ(y[0].real(2 + 4 * i), 2 * i);
      EXPECT_EQ(y[0].real(2 + 4 * i + 2), sum);
    }
    EXPECT_EQ(y[3].real(0), sum);
  }
}

// Splits an axis of open size into parts of 3; the last may be shorter.
TEST(OpenSequences, PartsOfAnOpenAxis) {
  ModelBuilder b;
  b.input("x", DType::f32, {"n", "2"});
  b.input("k", DType::i64, {});
  b.constant("three", Array::scalar_int(3, DType::i64));
  b.node("SplitToSequence", {"x", "three"}, {"s"});
  b.node("SequenceAt", {"s", "k"}, {"y"});
  b.node("SequenceLength", {"s"}, {"length"});
  set_int(b.node("ConcatFromSequence", {"s"}, {"all"}), "axis", 0);
  for (const char* name : {"y", "length", "all"}) b.output(name);
  const auto at = [&](std::int64_t rows, std::int64_t k) {
    return b.run({counting({rows, 2}), Array::scalar_int(k, DType::i64)});
  };
  EXPECT_EQ(at(7, 1)[0], reals({3, 2}, {6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(at(7, -1)[0], reals({1, 2}, {12, 13}));
  EXPECT_EQ(at(6, -1)[0], reals({3, 2}, {6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(at(2, 0)[0], reals({2, 2}, {0, 1, 2, 3}));
  EXPECT_EQ(at(7, 0)[1].integer(0), 3);
  EXPECT_EQ(at(7, 0)[2], counting({7, 2}));
  EXPECT_THROW(at(7, 3), UserError);
  set_int(b.node("ConcatFromSequence", {"s"}, {"side"}), "axis", 1);
  b.output("side");
  expect_contains(b.failure(), "the last may be shorter");
}

// The length of the parts of an axis of 7 depends on data.
TEST(OpenSequences, PartsOfASizeByData) {
  ModelBuilder b;
  b.input("x", DType::f32, {"7", "2"});
  b.input("each", DType::i64, {});
  b.input("k", DType::i64, {});
  b.node("SplitToSequence", {"x", "each"}, {"s"});
  b.node("SequenceAt", {"s", "k"}, {"y"});
  b.node("SequenceLength", {"s"}, {"length"});
  set_int(b.node("ConcatFromSequence", {"s"}, {"all"}), "axis", 0);
  for (const char* name : {"y", "length", "all"}) b.output(name);
  const auto at = [&](std::int64_t each, std::int64_t k) {
    return b.run(
        {counting({7, 2}), Array::scalar_int(each, DType::i64), Array::scalar_int(k, DType::i64)});
  };
  EXPECT_EQ(at(3, 1)[0], reals({3, 2}, {6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(at(3, -1)[0], reals({1, 2}, {12, 13}));
  EXPECT_EQ(at(2, -4)[0], reals({2, 2}, {0, 1, 2, 3}));
  EXPECT_EQ(at(1, 6)[0], reals({1, 2}, {12, 13}));
  for (const std::int64_t each : {7, 8, 100'000}) {
    EXPECT_EQ(at(each, 0)[0], counting({7, 2}));
    EXPECT_EQ(at(each, 0)[1].integer(0), 1);
  }
  EXPECT_EQ(at(2, 0)[1].integer(0), 4);
  EXPECT_EQ(at(2, 0)[2], counting({7, 2}));
  EXPECT_THROW(at(3, 3), UserError);
  EXPECT_THROW(at(0, 0), UserError);
  EXPECT_THROW(at(-1, 0), UserError);
}

TEST(OpenSequences, PartsOfSizesByData) {
  ModelBuilder b;
  b.input("x", DType::f32, {"2", "5"});
  b.input("sizes", DType::i64, {"3"});
  set_int(b.node("SplitToSequence", {"x", "sizes"}, {"s"}), "axis", -1);
  b.constant("one", Array::scalar_int(1, DType::i64));
  b.node("SequenceAt", {"s", "one"}, {"y"});
  b.node("SequenceErase", {"s", "one"}, {"rest"});
  set_int(b.node("ConcatFromSequence", {"rest"}, {"z"}), "axis", 1);
  for (const char* name : {"y", "z"}) b.output(name);
  const auto of = [&](const Integers& sizes) {
    return b.run({counting({2, 5}), Array::from_ints(sizes)});
  };
  EXPECT_EQ(of({1, 2, 2})[0], reals({2, 2}, {1, 2, 6, 7}));
  EXPECT_EQ(of({1, 2, 2})[1], reals({2, 3}, {0, 3, 4, 5, 8, 9}));
  EXPECT_EQ(of({0, 5, 0})[0], counting({2, 5}));
  EXPECT_EQ(of({2, 0, 3})[1], counting({2, 5}));
  EXPECT_THROW(of({1, 2, 3}), UserError);
  EXPECT_THROW(of({-1, 3, 3}), UserError);
}

// A SequenceMap over the rows of x, the elements of `second`, and a tensor: row * other + k.
ModelBuilder mapped_rows(const char* second) {
  ModelBuilder b;
  b.input("x", DType::f32, {"n", "2"});
  b.input("z", DType::f32, {"m", "2"});
  b.input("k", DType::f32, {"2"});
  set_int(b.node("SplitToSequence", {"x"}, {"xs"}), "keepdims", 0);
  set_int(b.node("SplitToSequence", {"z"}, {"zs"}), "keepdims", 0);
  b.node("SequenceConstruct", {"k", "k", "k"}, {"three"});
  b.node("SequenceEmpty", {}, {"none"});
  onnx_pb::Graph& g =
      set_graph(b.node("SequenceMap", {"xs", second, "k"}, {"sequence", "others"}), "body");
  for (const char* name : {"row", "other", "added"}) g.add_input()->set_name(name);
  ModelBuilder::add(g, "Mul", {"row", "other"}, {"product"});
  ModelBuilder::add(g, "Add", {"product", "added"}, {"sum"});
  set_int(ModelBuilder::add(g, "ReduceSum", {"row"}, {"total"}), "keepdims", 1);
  for (const char* name : {"sum", "total"}) g.add_output()->set_name(name);
  add_outputs_of_sequence(b);
  set_int(b.node("ConcatFromSequence", {"others"}, {"totals"}), "axis", 0);
  b.output("totals");
  return b;
}

TEST(OpenSequences, AreMapped) {
  const ModelBuilder b = mapped_rows("zs");
  const Imported model = b.import({.dims = {{"n", {0, 64}}, {"m", {0, 64}}}});
  const Array k = reals({2}, {3, 5});
  for (const std::int64_t n : {1, 2, 20}) {
    const Array x = counting({n, 2});
    const std::vector<Array> y = evaluate(model.variants.at(0).function, std::vector{x, x, k});
    ASSERT_EQ(y[0].dims(), Integers{2 * n});
    EXPECT_EQ(y[2].integer(0), n);
    for (std::int64_t i = 0; i < 2 * n; ++i)
      EXPECT_EQ(y[0].real(i), static_cast<double>(i * i) + k.real(i % 2));
    EXPECT_EQ(y[3].real(0), y[0].real(2 * n - 2));
    ASSERT_EQ(y[4].dims(), Integers{n});
    for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(y[4].real(i), 4 * i + 1);
  }
  EXPECT_THROW(b.run({counting({2, 2}), counting({3, 2}), k}), UserError);
}

TEST(OpenSequences, NoElementsAreMapped) {
  ModelBuilder b = mapped_rows("zs");
  b.model.mutable_graph()->mutable_output()->DeleteSubrange(3, 1);  // the last element
  b.model.mutable_graph()->mutable_node()->DeleteSubrange(8, 1);
  const Imported model = b.import({.dims = {{"n", {0, 64}}, {"m", {0, 64}}}});
  const std::vector<Array> y =
      evaluate(model.variants.at(0).function,
               std::vector{counting({0, 2}), counting({0, 2}), counting({2})});
  EXPECT_EQ(y[0].dims(), Integers{0});
  EXPECT_EQ(y[1].dims(), (Integers{2, 0}));
  EXPECT_EQ(y[2].integer(0), 0);
  EXPECT_EQ(y[3].dims(), Integers{0});
}

TEST(OpenSequences, AreMappedBesideOthers) {
  const ModelBuilder b = mapped_rows("three");
  const Array k = reals({2}, {3, 5}), z = counting({1, 2});
  EXPECT_EQ(b.run({counting({3, 2}), z, k})[0], reals({6}, {3, 10, 9, 20, 15, 30}));
  EXPECT_THROW(b.run({counting({2, 2}), z, k}), UserError);
  expect_contains(mapped_rows("none").failure(), "input 1 is mapped beside a sequence of open");
}

// The position is given by data; the sequence has a known length or consists of the rows of x.
TEST(OpenSequences, InsertAndEraseAtAPosition) {
  for (const bool is_open : {false, true}) {
    ModelBuilder b;
    b.input("x", DType::f32, {is_open ? "n" : "3", "1"});
    b.input("k", DType::i64, {});
    b.constant("new", reals({1, 1}, {9}));
    b.node("SplitToSequence", {"x"}, {"s"});
    b.node("SequenceInsert", {"s", "new", "k"}, {"more"});
    b.node("SequenceErase", {"more", "k"}, {"same"});
    b.node("SequenceErase", {"same", "k"}, {"less"});
    b.node("SequenceErase", {"less"}, {"least"});
    const char* of[] = {"more", "same", "less", "least"};
    const char* joined[] = {"more_", "same_", "less_", "least_"};
    for (int i = 0; i < 4; ++i) {
      set_int(b.node("ConcatFromSequence", {of[i]}, {joined[i]}), "axis", 0);
      b.output(joined[i]);
    }
    const auto at = [&](std::int64_t k) {
      std::vector<std::vector<double>> out;
      for (const Array& a : b.run({counting({3, 1}), Array::scalar_int(k, DType::i64)}))
        out.push_back(numbers_of(a));
      return out;
    };
    using Lists = std::vector<std::vector<double>>;
    EXPECT_EQ(at(0), (Lists{{9, 0, 1, 2}, {0, 1, 2}, {1, 2}, {1}}));
    EXPECT_EQ(at(2), (Lists{{0, 1, 9, 2}, {0, 1, 2}, {0, 1}, {0}}));
    // With a negative position, an element is inserted before the one that is erased.
    EXPECT_EQ(at(-1), (Lists{{0, 1, 9, 2}, {0, 1, 9}, {0, 1}, {0}}));
    EXPECT_THROW(at(3), UserError) << "the last of three is at 2";
    EXPECT_THROW(at(-4), UserError);
  }
}

TEST(OpenSequences, WhatIsRefused) {
  ModelBuilder reads = appending_loop({"rows", "2"}, "none", [](onnx_pb::Graph& g) {
    ModelBuilder::add(g, "SequenceAt", {"t", "i"}, {"read"});
    ModelBuilder::add(g, "SequenceInsert", {"t", "read"}, {"u"});
  });
  reads.output("sequence");
  expect_contains(reads.failure(), "expected one that has an element before the loop");
  ModelBuilder other = appending_loop({"rows", "2"}, "none", [](onnx_pb::Graph& g) {
    ModelBuilder::add(g, "SequenceConstruct", {"row"}, {"u"});
  });
  other.output("sequence");
  expect_contains(other.failure(), "is another sequence after an iteration");
  ModelBuilder result = appending_loop({"rows", "2"}, "none");
  result.output("sequence");
  expect_contains(result.failure(), "output 'sequence' is a sequence of");
}

// ==== chosen by data

using Fill = std::function<void(onnx_pb::Graph&)>;

// An If whose branches produce a sequence. Outputs: its elements concatenated, their number, and
// the last one.
ModelBuilder chosen_sequence(const Fill& yes, const Fill& no) {
  ModelBuilder b;
  b.input("x", DType::f32, {"rows", "2"});
  b.input("c", DType::b1, {});
  b.node("SequenceConstruct", {"x"}, {"outer"});
  onnx_pb::Node& choice = b.node("If", {"c"}, {"sequence"});
  const auto branch = [&](const char* name, const char* output, const Fill& fill) {
    onnx_pb::Graph& g = set_graph(choice, name);
    ModelBuilder::add(g, "Neg", {"x"}, {"less"});
    fill(g);
    g.add_output()->set_name(output);
  };
  branch("then_branch", "then", yes);
  branch("else_branch", "else", no);
  b.constant("last", Array::scalar_int(-1, DType::i64));
  set_int(b.node("ConcatFromSequence", {"sequence"}, {"joined"}), "axis", 0);
  b.node("SequenceLength", {"sequence"}, {"length"});
  b.node("SequenceAt", {"sequence", "last"}, {"end"});
  for (const char* name : {"joined", "length", "end"}) b.output(name);
  return b;
}

std::vector<Array> chosen_by(const ModelBuilder& b, bool condition, std::int64_t rows = 2) {
  return b.run({counting({rows, 2}), Array::scalar_int(condition, DType::b1)});
}

void one(onnx_pb::Graph& g, const char* name, const std::vector<std::string>& elements) {
  ModelBuilder::add(g, "SequenceConstruct", elements, {name});
}

TEST(ChosenSequences, OfOneLengthMayHaveOtherSizes) {
  const ModelBuilder b =
      chosen_sequence([](onnx_pb::Graph& g) { one(g, "then", {"x", "less"}); },
                      [](onnx_pb::Graph& g) {
                        set_int(ModelBuilder::add(g, "Concat", {"x", "x"}, {"twice"}), "axis", 0);
                        one(g, "else", {"twice", "x"});
                      });
  const std::vector<Array> yes = chosen_by(b, true), no = chosen_by(b, false);
  EXPECT_EQ(yes[0], reals({4, 2}, {0, 1, 2, 3, -0.0f, -1, -2, -3}));
  EXPECT_EQ(yes[2], reals({2, 2}, {-0.0f, -1, -2, -3}));
  EXPECT_EQ(no[0], reals({6, 2}, {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(no[1].integer(0), 2);
}

TEST(ChosenSequences, OfSeveralLengthsHaveElementsOfOneType) {
  const ModelBuilder b =
      chosen_sequence([](onnx_pb::Graph& g) { one(g, "then", {"less"}); },
                      [](onnx_pb::Graph& g) {
                        ModelBuilder::add(g, "SequenceInsert", {"outer", "less"}, {"more"});
                        ModelBuilder::add(g, "SequenceInsert", {"more", "x"}, {"else"});
                      });
  for (const std::int64_t rows : {1, 2}) {
    const std::vector<Array> yes = chosen_by(b, true, rows), no = chosen_by(b, false, rows);
    EXPECT_EQ(yes[0].dims(), (Integers{rows, 2}));
    EXPECT_EQ(no[0].dims(), (Integers{3 * rows, 2}));
    EXPECT_EQ(yes[1].integer(0), 1);
    EXPECT_EQ(no[1].integer(0), 3);
    EXPECT_EQ(yes[2].real(1), -1);
    EXPECT_EQ(no[2].real(1), 1);
  }
}

TEST(ChosenSequences, MayBeEmptyOrSplitFromAnOpenAxis) {
  ModelBuilder b = chosen_sequence(
      [](onnx_pb::Graph& g) { ModelBuilder::add(g, "SequenceEmpty", {}, {"then"}); },
      [](onnx_pb::Graph& g) { ModelBuilder::add(g, "SplitToSequence", {"x"}, {"else"}); });
  b.model.mutable_graph()->mutable_output()->DeleteSubrange(2, 1);  // the last element
  b.model.mutable_graph()->mutable_node()->DeleteSubrange(4, 1);
  EXPECT_EQ(chosen_by(b, true)[1].integer(0), 0);
  EXPECT_EQ(chosen_by(b, true)[0].dims(), (Integers{0, 2}));
  EXPECT_EQ(chosen_by(b, false, 5)[1].integer(0), 5);
  EXPECT_EQ(chosen_by(b, false, 5)[0], counting({5, 2}));
}

TEST(ChosenSequences, OfSeveralLengthsAndTypesAreRefused) {
  const ModelBuilder b =
      chosen_sequence([](onnx_pb::Graph& g) { one(g, "then", {"x"}); },
                      [](onnx_pb::Graph& g) {
                        set_int(ModelBuilder::add(g, "Concat", {"x", "x"}, {"twice"}), "axis", 0);
                        one(g, "else", {"x", "twice"});
                      });
  expect_contains(b.failure(), "has another length in the other branch");
}

}  // namespace
}  // namespace hone
