// Axes, steps, counts and shapes given by data give the same results as constants; so do branches
// and loops whose values change their sizes.
#include <cmath>
#include <limits>

#include "by_data.h"
#include "import/onnx/check.h"
#include "ir/measured.h"
#include "type/text.h"

namespace hone {
namespace {

TEST(OpenOperands, AxesByData) {
  const Given x = {"x", counting({2, 3, 4})};
  for (std::int64_t axis : {0, 1, 2, -1, -3}) {
    for (const char* op :
         {"ReduceSum", "ReduceMax", "ReduceProd", "ReduceMean", "ReduceL2", "ReduceLogSumExp"})
      for (std::int64_t keep : {0, 1})
        expect_alike(op, {x, data("a", {axis})}, 1, with("keepdims", keep));
    expect_alike("CumSum", {x, scalar_data("a", axis)});
    expect_alike("Unsqueeze", {x, data("a", {axis})});
  }
  expect_alike("ReduceSum", {x, data("a", {2, 0})}, 1, with("keepdims", 0));
  expect_alike("ReduceMin", {x, data("a", {-2, 0})});
  expect_alike("Unsqueeze", {x, data("a", {4, 0})});
  const Given ones = {"x", counting({1, 3, 1})};
  for (const Integers& axes : {Integers{0}, {2}, {0, 2}, {-1}, {-3, -1}})
    expect_alike("Squeeze", {ones, data("a", axes)});
  EXPECT_THROW(OneNode("Squeeze", {ones, data("a", {1})}).run(), UserError);
  EXPECT_THROW(OneNode("ReduceSum", {x, data("a", {3})}).run(), UserError);
  EXPECT_THROW(OneNode("ReduceSum", {x, data("a", {1, 1})}).run(), UserError);
}

// A model with one reduction over the axes in its input 'a'; each run determines their number.
struct OpenAxes {
  OpenAxes(const std::string& op, const std::vector<std::string>& sizes, const Set& set) {
    builder.input("x", DType::f32, sizes);
    builder.input("a", DType::i64, {"k"});
    set(builder.node(op, {"x", "a"}, {"y"}));
    builder.output("y");
  }
  ModelBuilder builder;
};

TEST(OpenOperands, AnOpenNumberOfAxes) {
  const std::vector<Integers> lists = {{}, {0}, {-1}, {1, 0}, {2, -3}, {-2}, {0, 1, 2}};
  const ImportOptions from_zero = {
      .dims = {{"k", {0, 8}}, {"n", {0, 8}}, {"m", {0, 8}}, {"p", {0, 8}}}};
  for (const char* op :
       {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceSumSquare", "ReduceLogSum"})
    for (std::int64_t noop : {0, 1}) {
      const Set set = with("noop_with_empty_axes", noop);
      const Imported open = OpenAxes(op, {"n", "m", "p"}, set).builder.import(from_zero);
      for (const Integers& dims : {Integers{2, 3, 4}, {1, 3, 1}, {1, 1, 1}})
        for (const Integers& axes : lists) {
          const std::vector<Array> inputs = {counting(dims), Array::from_ints(axes)};
          const ImportedVariant* v = variant_for(open, inputs);
          ASSERT_TRUE(v);
          OneNode known(op, {{"x", inputs[0]}, constant(data("a", axes))});
          set(*known.node);
          EXPECT_EQ(evaluate(v->function, inputs)[0], known.run()[0])
              << op << " of " << Shape(dims_of(dims)) << " over " << Shape(dims_of(axes));
        }
    }
}

TEST(OpenOperands, AnOpenNumberOfAxesOfNothing) {
  const Imported open = OpenAxes("ReduceSum", {"n", "2"}, [](onnx_pb::Node&) {
                        }).builder.import({.dims = {{"k", {0, 8}}, {"n", {0, 8}}}});
  const Function& f = open.variants.at(0).function;
  const auto sum = [&](const Array& x, const Integers& axes) {
    return evaluate(f, std::vector{x, Array::from_ints(axes)})[0];
  };
  EXPECT_EQ(sum(counting({0, 2}), {0}), reals({1, 2}, {0, 0}));
  EXPECT_EQ(sum(counting({0, 2}), {1}), reals({0, 1}, {}));
  EXPECT_EQ(sum(counting({0, 2}), {}), reals({1, 1}, {0}));
  EXPECT_EQ(sum(counting({3, 2}), {-1}), reals({3, 1}, {1, 5, 9}));
  EXPECT_EQ(sum(counting({1, 2}), {1, 0}), reals({1, 1}, {1}));
}

TEST(OpenOperands, AnOpenNumberOfAxesIsChecked) {
  const OpenAxes keep("ReduceMax", {"2", "3"}, with("keepdims", 1));
  const std::vector<std::pair<Integers, std::string>> wrong = {
      {{2}, "an axis is 2, expected -2 to 1"},
      {{0, -3}, "an axis is -3, expected -2 to 1"},
      {{1, 1}, "how often one axis is named is 2, expected 0 to 1"},
      {{0, 1, -2}, "how often one axis is named is 2, expected 0 to 1"}};
  for (const auto& [axes, why] : wrong) try {
      keep.builder.run({counting({2, 3}), Array::from_ints(axes)});
      ADD_FAILURE() << Shape(dims_of(axes)) << " was taken";
    } catch (const UserError& e) {
      expect_contains(e.what(), why);
    }
}

TEST(OpenOperands, CountsAndStepsByData) {
  const Given x = {"x", counting({9, 2})};
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const Integers& s : {Integers{1, 8, 2},
                            {8, -100, -3},
                            {-1, 0, -1},
                            {0, most, 4},
                            {most, -most - 1, -2},
                            {3, 3, 1},
                            {5, 2, 1},
                            {0, 9, most},
                            {8, -100, -most - 1}})
    expect_alike("Slice", {x, data("s", {s[0]}), data("e", {s[1]}), constant(data("a", {0})),
                           data("t", {s[2]})});
  expect_alike("Split", {x, data("n", {2, 0, 7})}, 3);
  EXPECT_THROW(OneNode("Split", {x, data("n", {2, 5})}, 2).run(), UserError);
  expect_alike("OneHot", {{"x", Array::from_ints(Integers{0, 2, -1})},
                          scalar_data("d", 4),
                          {"v", reals({2}, {5, 7})}});
  expect_alike("Trilu", {{"x", counting({3, 4})}, scalar_data("k", 1)});
}

TEST(OpenOperands, ShapesByData) {
  const Given row = {"x", counting({1, 3})}, table = {"x", counting({2, 3})};
  for (const Integers& to : {Integers{2, 3}, {2, 1}, {1, 1}, {4, 1, 3}, {1}, {0, 3}})
    expect_alike("Expand", {row, data("s", to)});
  for (const Integers& to : {Integers{1, 1}, {2, 1}, {5, 2, 3}})
    expect_alike("Expand", {table, data("s", to)});
  EXPECT_THROW(OneNode("Expand", {table, data("s", {3, 3})}).run(), UserError);
  for (const Integers& p : {Integers{1, -1, 0, 2}, {-1, 0, 0, -3}, {0, 0, 0, 0}, {3, 2, 1, 0}})
    expect_alike("Pad", {table, data("p", p), {"v", Array::scalar(7, DType::f32)}});
  for (const char* mode : {"reflect", "edge", "wrap"})
    for (const Integers& p : {Integers{1, 2, 1, 2}, {0, 0, 1, -1}, {0, -1, 1, 0}})
      expect_alike("Pad", {table, data("p", p)}, 1,
                   [&](onnx_pb::Node& n) { set_text(n, "mode", mode); });
  for (const std::vector<float>& s : {std::vector<float>{2, 1.5f}, {0.5f, 3}, {1, 1}})
    for (const char* mode : {"nearest", "linear", "cubic"})
      expect_alike("Resize", {{"x", counting({4, 6})}, {"", {}}, {"s", reals({2}, s)}}, 1,
                   [&](onnx_pb::Node& n) { set_text(n, "mode", mode); });
}

// Resizes to the sizes `s`, or by the scales `s`.
void expect_same_resize(const Array& x, const Given& s, const Set& set) {
  std::vector<Given> given = {{"x", x}, {"", {}}, {"", {}}, s};
  if (is_float(s.value.dtype())) given = {{"x", x}, {"", {}}, s};
  expect_alike("Resize", given, 1, set);
}

TEST(OpenOperands, SmoothResizesByData) {
  for (const char* mode : {"linear", "cubic"})
    for (std::int64_t outside : {0, 1}) {
      const Set smooth = [&](onnx_pb::Node& n) {
        set_text(n, "mode", mode);
        set_int(n, "antialias", 1);
        set_int(n, "exclude_outside", outside);
      };
      for (const Integers& to : {Integers{1, 1}, {2, 3}, {3, 9}, {11, 1}, {7, 4}})
        expect_same_resize(counting({7, 9}), data("s", to), smooth);
      expect_same_resize(counting({1, 1}), data("s", {1, 4}), smooth);
      for (const std::vector<float>& by :
           {std::vector<float>{0.5f, 0.25f}, {1, 0.125f}, {2, 0.375f}, {0.0625f, 1}})
        expect_same_resize(counting({8, 9}), {"s", reals({2}, by)}, smooth);
    }
}

TEST(OpenOperands, ResizesThatKeepTheirAspectByData) {
  for (const char* policy : {"not_larger", "not_smaller"})
    for (const char* mode : {"nearest", "linear", "cubic"})
      for (std::int64_t smooth : {0, 1}) {
        if (smooth && std::string_view(mode) == "nearest") continue;
        const Set keep = [&](onnx_pb::Node& n) {
          set_text(n, "keep_aspect_ratio_policy", policy);
          set_text(n, "mode", mode);
          set_int(n, "antialias", smooth);
        };
        for (const Integers& to : {Integers{6, 9}, {2, 8}, {9, 2}, {1, 1}, {5, 7}, {1, 20}})
          expect_same_resize(counting({5, 7}), data("s", to), keep);
        expect_same_resize(counting({1, 3}), data("s", {1, 1}), keep);
      }
}

// Resizing an image of open size to a fixed size, as exporters write it, needs no data.
TEST(OpenOperands, SmoothResizesOfOpenSizes) {
  for (const char* policy : {"stretch", "not_larger", "not_smaller"}) {
    const Set set = [&](onnx_pb::Node& n) {
      set_text(n, "mode", "linear");
      set_int(n, "antialias", 1);
      set_text(n, "keep_aspect_ratio_policy", policy);
    };
    ModelBuilder b;
    b.input("x", DType::f32, {"h", "w"});
    b.ints("s", {3, 4});
    set(b.node("Resize", {"x", "", "", "s"}, {"y"}));
    b.output("y");
    for (const Integers& dims : {Integers{1, 1}, {3, 4}, {9, 5}, {20, 31}}) {
      OneNode known("Resize",
                    {{"x", counting(dims)}, {"", {}}, {"", {}}, constant(data("s", {3, 4}))});
      set(*known.node);
      EXPECT_EQ(b.run({counting(dims)})[0], known.run()[0]) << policy << Shape(dims_of(dims));
    }
  }
}

TEST(OpenOperands, SizesOfResizesAreChecked) {
  const auto resized = [](const Given& s, const Set& set) {
    std::vector<Given> given = {{"x", counting({4, 6})}, {"", {}}, {"", {}}, s};
    if (is_float(s.value.dtype())) given = {given[0], {"", {}}, s};
    OneNode node("Resize", given);
    set_text(*node.node, "mode", "linear");
    set(*node.node);
    return node;
  };
  const auto scales = [](float a, float b) { return Given{"s", reals({2}, {a, b})}; };
  const auto keep = [](const char* policy) {
    return [=](onnx_pb::Node& n) { set_text(n, "keep_aspect_ratio_policy", policy); };
  };
  const Set smooth = with("antialias", 1);
  const std::string range = "expected 0 to";
  EXPECT_EQ(resized(scales(0, 1), smooth).run()[0].dims(), (Integers{0, 6}));
  EXPECT_EQ(resized(scales(0.125f, 1), smooth).run()[0].dims(), (Integers{0, 6}));
  expect_contains(resized(scales(17, 1), smooth).refusal(), range);
  expect_contains(resized(scales(-1, 1), smooth).refusal(), range);
  for (const char* policy : {"not_larger", "not_smaller"})
    expect_contains(resized(data("s", {-1, -1}), keep(policy)).refusal(), range);
  // 6 columns would become 6144, more than the planned 4096.
  expect_contains(resized(data("s", {4096, 1}), keep("not_smaller")).refusal(), range);
  EXPECT_EQ(resized(data("s", {4096, 3}), keep("not_larger")).run()[0].dims(), (Integers{2, 3}));
}

// The bound of a reshaped size is the element count of x, even after several reshapes.
TEST(OpenOperands, ShapesByDataInAChain) {
  ModelBuilder b;
  b.input("x", DType::f32, {"n", "c", "h", "w"});
  std::string before = "x";
  const std::vector<Integers> shapes = {{2, -1, 4, 5}, {2, 12, -1}, {0, 3, 4, -1}, {-1, 10}};
  std::vector<Array> inputs = {counting({2, 3, 4, 5})};
  for (const Integers& shape : shapes) {
    const std::string name = cat("shape", inputs.size()), made = cat("y", inputs.size());
    b.input(name, DType::i64, {cat(shape.size())});
    inputs.push_back(Array::from_ints(shape));
    b.node("Relu", {before}, {made + "r"});
    b.node("Reshape", {made + "r", name}, {made});
    before = made;
  }
  b.output(before);
  const Function f = b.import().variants[0].function;
  EXPECT_EQ(evaluate(f, inputs)[0].dims(), (Integers{12, 10}));
  const Dims most = largest(f.result(0).type(), measured_sizes(f.graph())).shape.dims;
  EXPECT_EQ(cat(most[0]), "(c*h*n*w)");
}

TEST(OpenOperands, ARangeOfManyNumbers) {
  const std::vector<Array> y =
      OneNode("Range", {scalar_data("a", 5), scalar_data("b", 100005), scalar_data("c", 1)}).run();
  ASSERT_EQ(y[0].dims(), Integers{100000});
  EXPECT_EQ(y[0].integer(99999), 100004);
}

// ==== branches and sequences

TEST(OpenBranches, MayGiveOtherSizes) {
  ModelBuilder b;
  b.input("c", DType::b1, {});
  b.input("x", DType::f32, {"n", "2"});
  onnx_pb::Node& n = b.node("If", {"c"}, {"y", "z"});
  onnx_pb::Graph &yes = set_graph(n, "then_branch"), &no = set_graph(n, "else_branch");
  ModelBuilder::add(yes, "Concat", {"x", "x"}, {"y1"});
  set_int(*yes.mutable_node(0), "axis", 0);
  ModelBuilder::add(yes, "NonZero", {"x"}, {"z1"});
  ModelBuilder::add(no, "Neg", {"x"}, {"y2"});
  ModelBuilder::add(no, "NonZero", {"y1x"}, {"z2"});
  ModelBuilder::fill(no.add_initializer(), "y1x", reals({1, 2}, {0, 1}));
  for (const char* name : {"y1", "z1"}) yes.add_output()->set_name(name);
  for (const char* name : {"y2", "z2"}) no.add_output()->set_name(name);
  b.output("y");
  b.output("z");
  const Array x = reals({2, 2}, {1, 2, 0, 4});
  auto run = [&](int c) { return b.run({Array::scalar_int(c, DType::b1), x}); };
  EXPECT_EQ(run(1)[0], reals({4, 2}, {1, 2, 0, 4, 1, 2, 0, 4}));
  EXPECT_EQ(run(1)[1], Array::of<std::int64_t>(DType::i64, {2, 3}, Integers{0, 0, 1, 0, 1, 1}));
  EXPECT_EQ(run(0)[0], reals({2, 2}, {-1, -2, -0.0f, -4}));
  EXPECT_EQ(run(0)[1], Array::of<std::int64_t>(DType::i64, {2, 1}, Integers{0, 1}));
}

// Sizes that are equal only in some runs: n and min(n, 2), n and m.
TEST(OpenBranches, MayGiveSizesOfInputs) {
  for (const bool is_slice : {true, false}) {
    ModelBuilder b;
    b.input("c", DType::b1, {});
    b.input("x", DType::f32, {"n"});
    b.input("z", DType::f32, {"m"});
    b.ints("zero", {0});
    b.ints("two", {2});
    onnx_pb::Node& n = b.node("If", {"c"}, {"y"});
    onnx_pb::Graph &yes = set_graph(n, "then_branch"), &no = set_graph(n, "else_branch");
    ModelBuilder::add(yes, "Neg", {"x"}, {"whole"});
    if (is_slice)
      ModelBuilder::add(no, "Slice", {"x", "zero", "two"}, {"other"});
    else
      ModelBuilder::add(no, "Identity", {"z"}, {"other"});
    yes.add_output()->set_name("whole");
    no.add_output()->set_name("other");
    b.output("y");
    const Array x = reals({3}, {1, 2, 3}), z = reals({5}, {4, 5, 6, 7, 8});
    const auto run = [&](int c) { return b.run({Array::scalar_int(c, DType::b1), x, z})[0]; };
    EXPECT_EQ(run(1), reals({3}, {-1, -2, -3}));
    EXPECT_EQ(run(0), is_slice ? reals({2}, {1, 2}) : z);
  }
}

TEST(OpenBranches, AnElementOfASequenceByData) {
  ModelBuilder b;
  b.input("x", DType::f32, {"3", "2"});
  b.input("k", DType::i64, {});
  b.ints("sizes", {1, 2});
  b.node("SplitToSequence", {"x", "sizes"}, {"s"});
  b.node("SequenceAt", {"s", "k"}, {"y"});
  b.output("y");
  const Array x = counting({3, 2});
  auto at = [&](std::int64_t k) { return b.run({x, Array::scalar_int(k, DType::i64)})[0]; };
  for (std::int64_t k : {0, -2}) EXPECT_EQ(at(k), reals({1, 2}, {0, 1}));
  for (std::int64_t k : {1, -1}) EXPECT_EQ(at(k), reals({2, 2}, {2, 3, 4, 5}));
  EXPECT_THROW(at(2), UserError);
}

// A branch that reads a sequence from outside it.
TEST(OpenBranches, ReadSequencesFromOutside) {
  ModelBuilder b;
  b.input("c", DType::b1, {});
  b.input("x", DType::f32, {"2"});
  b.node("SequenceConstruct", {"x", "x"}, {"s"});
  b.constant("zero", Array::scalar_int(0, DType::i64));
  onnx_pb::Node& n = b.node("If", {"c"}, {"y"});
  onnx_pb::Graph &yes = set_graph(n, "then_branch"), &no = set_graph(n, "else_branch");
  ModelBuilder::add(yes, "SequenceAt", {"s", "zero"}, {"y1"});
  set_int(ModelBuilder::add(no, "ConcatFromSequence", {"s"}, {"y2"}), "axis", 0);
  yes.add_output()->set_name("y1");
  no.add_output()->set_name("y2");
  b.output("y");
  const Array x = reals({2}, {3, 4});
  EXPECT_EQ(b.run({Array::scalar_int(1, DType::b1), x})[0], x);
  EXPECT_EQ(b.run({Array::scalar_int(0, DType::b1), x})[0], reals({4}, {3, 4, 3, 4}));
}

// Nodes that depend on an unsupported part are skipped, not reported as wrong.
TEST(OpenBranches, OfWhatIsNotSupported) {
  ModelBuilder b;
  b.input("c", DType::b1, {});
  b.input("x", DType::f32, {"2"});
  onnx_pb::Node& n = b.node("If", {"c"}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    onnx_pb::Graph& g = set_graph(n, branch);
    ModelBuilder::add(g, "Nonesuch", {"x"}, {"v"});
    onnx_pb::Node& inner = ModelBuilder::add(g, "If", {"c"}, {"w"});
    for (const char* side : {"then_branch", "else_branch"}) {
      onnx_pb::Graph& h = set_graph(inner, side);
      ModelBuilder::add(h, "Neg", {"v"}, {"u"});
      h.add_output()->set_name("u");
    }
    g.add_output()->set_name("w");
  }
  b.output("y");
  const std::string why = b.failure();
  EXPECT_NE(why.find("Nonesuch"), std::string::npos) << why;
  EXPECT_EQ(why.find("0 results"), std::string::npos) << why;
}

// ==== sizes

// Exporters compute sizes in floats, next to sizes that are open.
TEST(OpenSizes, ComputedInFloatsAreKnown) {
  ModelBuilder b;
  b.input("x", DType::f32, {"n", "6"});
  b.node("Shape", {"x"}, {"s"});
  b.constant("one", Array::scalar_int(1, DType::i64));
  b.constant("four", reals({}, {4}));
  b.node("Gather", {"s", "one"}, {"w"});
  set_int(b.node("Cast", {"w"}, {"f"}), "to", 1);
  b.node("Div", {"f", "four"}, {"d"});
  b.node("Ceil", {"d"}, {"c"});
  set_int(b.node("Cast", {"c"}, {"i"}), "to", 7);
  b.ints("axes", {0});
  b.ints("rest", {-1});
  b.node("Unsqueeze", {"i", "axes"}, {"u"});
  set_int(b.node("Concat", {"rest", "u"}, {"t"}), "axis", 0);
  b.node("Reshape", {"x", "t"}, {"y"});
  b.output("y");
  const Function f = b.import().variants.at(0).function;
  EXPECT_EQ(f.result(0).type().shape[1], Dim(2));
  EXPECT_EQ(b.run({counting({3, 6})})[0].dims(), (Integers{9, 2}));
}

// x[i:i+1] has at most one element, even if the bounds themselves are such slices.
TEST(OpenSizes, ASliceOfKnownLength) {
  ModelBuilder b;
  b.input("x", DType::f32, {"5", "2"});
  b.input("offsets", DType::i64, {"3"});
  b.input("i", DType::i64, {"1"});
  b.ints("one", {1});
  b.ints("two", {2});
  b.node("Add", {"i", "one"}, {"j"});
  b.node("Add", {"i", "two"}, {"k"});
  b.node("Slice", {"offsets", "i", "j"}, {"start"});
  b.node("Slice", {"offsets", "j", "k"}, {"end"});
  b.node("Slice", {"x", "start", "end"}, {"rows"});
  set_int(b.node("ReduceSum", {"rows", "zero"}, {"sum"}), "keepdims", 1);
  b.ints("zero", {0});
  b.node("Sub", {"end", "start"}, {"count"});
  set_int(b.node("Cast", {"count"}, {"real"}), "to", 1);
  b.node("Div", {"sum", "real"}, {"y"});
  b.output("y");
  const Array x = counting({5, 2}),
              offsets = Array::of<std::int64_t>(DType::i64, {3}, Integers{0, 3, 5});
  const auto at = [&](std::int64_t i) {
    return b.run({x, offsets, Array::of<std::int64_t>(DType::i64, {1}, Integers{i})})[0];
  };
  EXPECT_EQ(at(0), reals({1, 2}, {2, 3}));
  EXPECT_EQ(at(1), reals({1, 2}, {7, 8}));
}

// ==== loops

// A Loop that appends x to its carried value in each iteration, and counts.
ModelBuilder growing_loop(bool ends_by_data) {
  ModelBuilder b;
  b.input("n", DType::i64, {});
  b.input("x", DType::f32, {"1", "2"});
  b.constant("zero", Array::scalar_int(0, DType::i64));
  onnx_pb::Node& n = b.node("Loop", {ends_by_data ? "" : "n", "", "x", "zero"}, {"y", "count"});
  onnx_pb::Graph& g = set_graph(n, "body");
  ModelBuilder::fill(g.add_input(), "i", DType::i64, {});
  ModelBuilder::fill(g.add_input(), "on", DType::b1, {});
  ModelBuilder::fill(g.add_input(), "v", DType::f32, {"k", "2"});
  ModelBuilder::fill(g.add_input(), "c", DType::i64, {});
  ModelBuilder::fill(g.add_initializer(), "one", Array::scalar_int(1, DType::i64));
  set_int(ModelBuilder::add(g, "Concat", {"v", "x"}, {"v2"}), "axis", 0);
  ModelBuilder::add(g, "Add", {"c", "one"}, {"c2"});
  if (ends_by_data)
    ModelBuilder::add(g, "Less", {"c2", "n"}, {"goes_on"});
  else
    ModelBuilder::add(g, "Identity", {"on"}, {"goes_on"});
  for (const char* name : {"goes_on", "v2", "c2"}) g.add_output()->set_name(name);
  b.output("y");
  b.output("count");
  return b;
}

TEST(OpenLoops, CarryWhatGrows) {
  const Array x = reals({1, 2}, {3, 4});
  for (bool by_data : {false, true})
    for (std::int64_t n : {1, 2, 20, 100}) {
      const std::vector<Array> y = growing_loop(by_data).run({Array::scalar_int(n, DType::i64), x});
      ASSERT_EQ(y[0].dims(), (Integers{n + 1, 2}));
      for (std::int64_t i = 0; i <= n; ++i) {
        EXPECT_EQ(y[0].real(2 * i), 3);
        EXPECT_EQ(y[0].real(2 * i + 1), 4);
      }
      EXPECT_EQ(y[1].integer(0), n);
    }
  EXPECT_EQ(growing_loop(false).run({Array::scalar_int(0, DType::i64), x})[0], x);
}

// The output of an iteration has a data-dependent size, which is the same in all iterations.
TEST(OpenLoops, StackOutputsWhoseSizesDataDecides) {
  for (const bool ends_by_data : {false, true}) {
    ModelBuilder b;
    b.input("x", DType::f32, {"n", "4"});
    b.input("most", DType::i64, {});
    onnx_pb::Node& loop = b.node("Loop", {"most", "", "zero"}, {"count", "places"});
    b.constant("zero", Array::scalar_int(0, DType::i64));
    b.constant("limit", Array::scalar_int(30, DType::i64));
    onnx_pb::Graph& g = set_graph(loop, "body");
    ModelBuilder::fill(g.add_input(), "i", DType::i64, {});
    ModelBuilder::fill(g.add_input(), "on", DType::b1, {});
    ModelBuilder::fill(g.add_input(), "v", DType::i64, {});
    ModelBuilder::fill(g.add_initializer(), "one", Array::scalar_int(1, DType::i64));
    set_int(ModelBuilder::add(g, "Gather", {"x", "i"}, {"row"}), "axis", 0);
    ModelBuilder::add(g, "NonZero", {"row"}, {"places_1"});
    ModelBuilder::add(g, "Add", {"v", "one"}, {"v2"});
    if (ends_by_data)
      ModelBuilder::add(g, "Less", {"v2", "limit"}, {"goes_on"});
    else
      ModelBuilder::add(g, "Identity", {"on"}, {"goes_on"});
    for (const char* name : {"goes_on", "v2", "places_1"}) g.add_output()->set_name(name);
    b.output("places");
    const auto run = [&](const Array& x, std::int64_t n) {
      return b.run({x, Array::scalar_int(n, DType::i64)})[0];
    };
    const Array x = reals({3, 4}, {1, 0, 2, 0, 0, 3, 4, 0, 1, 1, 1, 0});
    EXPECT_EQ(run(x, 2), Array::of<std::int64_t>(DType::i64, {2, 1, 2}, Integers{0, 2, 1, 2}));
    EXPECT_EQ(run(x, 0).count(), 0);
    EXPECT_THROW(run(x, 3), UserError);  // two positions, then three
  }
}

// Kernels of the body are verified at sizes for which its additions are valid.
TEST(OpenLoops, CarryWhatASliceOfOpenSizeIsAddedTo) {
  ModelBuilder b;
  b.input("most", DType::i64, {});
  b.input("x", DType::f32, {"1"});
  b.constant("table", reals({5}, {1, 2, 3, 4, 5}));
  b.constant("one", Array::of<std::int64_t>(DType::i64, {1}, Integers{1}));
  onnx_pb::Graph& g = set_graph(b.node("Loop", {"most", "", "x"}, {"sum"}), "body");
  ModelBuilder::fill(g.add_input(), "i", DType::i64, {});
  ModelBuilder::fill(g.add_input(), "on", DType::b1, {});
  ModelBuilder::fill(g.add_input(), "v", DType::f32, {"1"});
  ModelBuilder::fill(g.add_initializer(), "axes",
                     Array::of<std::int64_t>(DType::i64, {1}, Integers{0}));
  ModelBuilder::add(g, "Unsqueeze", {"i", "axes"}, {"from"});
  ModelBuilder::add(g, "Add", {"from", "one"}, {"to"});
  ModelBuilder::add(g, "Slice", {"table", "from", "to"}, {"part"});
  ModelBuilder::add(g, "Add", {"v", "part"}, {"v2"});
  ModelBuilder::add(g, "Identity", {"on"}, {"on2"});
  for (const char* name : {"on2", "v2"}) g.add_output()->set_name(name);
  b.output("sum");
  EXPECT_EQ(b.run({Array::scalar_int(5, DType::i64), reals({1}, {-2})})[0], reals({1}, {13}));
}

TEST(OpenLoops, TurnAsOftenAsDataSays) {
  ModelBuilder b;
  b.input("n", DType::i64, {});
  b.constant("zero", Array::scalar_int(0, DType::i64));
  onnx_pb::Node& n = b.node("Loop", {"n", "", "zero"}, {"y"});
  onnx_pb::Graph& g = set_graph(n, "body");
  ModelBuilder::fill(g.add_input(), "i", DType::i64, {});
  ModelBuilder::fill(g.add_input(), "on", DType::b1, {});
  ModelBuilder::fill(g.add_input(), "v", DType::i64, {});
  ModelBuilder::add(g, "Add", {"v", "i"}, {"v2"});
  ModelBuilder::add(g, "Identity", {"on"}, {"on2"});
  for (const char* name : {"on2", "v2"}) g.add_output()->set_name(name);
  b.output("y");
  for (std::int64_t count : {0, 3, 70000})
    EXPECT_EQ(b.run({Array::scalar_int(count, DType::i64)})[0].integer(0), count * (count - 1) / 2);
}

// ==== axes without an element

TEST(OpenSizes, NothingToRepeatOver) {
  OneNode lstm("LSTM",
               {{"x", counting({0, 1, 3})},
                {"w", counting({1, 8, 3}), true},
                {"r", counting({1, 8, 2}), true}},
               3);
  const std::vector<Array> y = lstm.run();
  EXPECT_EQ(y[0].dims(), (Integers{0, 1, 1, 2}));
  EXPECT_EQ(y[1], reals({1, 1, 2}, {0, 0}));
  OneNode gru("GRU",
              {{"x", counting({0, 1, 3})},
               {"w", counting({1, 6, 3}), true},
               {"r", counting({1, 6, 2}), true}},
              2);
  EXPECT_EQ(gru.run()[1], reals({1, 1, 2}, {0, 0}));
  OneNode boxes(
      "NonMaxSuppression",
      {{"b", counting({1, 0, 4})}, {"s", counting({1, 1, 0})}, constant(scalar_data("m", 3))});
  EXPECT_EQ(boxes.run()[0].dims(), (Integers{0, 3}));
}

TEST(OpenSizes, ARangeFromZeroServesNothingToo) {
  ModelBuilder b;
  b.input("x", DType::f32, {"t", "1", "3"});
  b.constant("w", counting({1, 8, 3}));
  b.constant("r", counting({1, 8, 2}));
  b.node("LSTM", {"x", "w", "r"}, {"y", "h"});
  b.output("y");
  b.output("h");
  const Imported model = b.import({.dims = {{"t", {0, 64}}}});
  const std::vector<Array> none =
      evaluate(model.variants.at(0).function, std::vector{counting({0, 1, 3})});
  EXPECT_EQ(none[0].dims(), (Integers{0, 1, 1, 2}));
  EXPECT_EQ(none[1], reals({1, 1, 2}, {0, 0}));
  const Array x = counting({2, 1, 3});
  EXPECT_EQ(evaluate(model.variants.at(0).function, std::vector{x})[0], b.run({x})[0]);
}

TEST(OpenSizes, AScanOfNothingGivesWhatItCarries) {
  ModelBuilder b;
  b.input("s", DType::f32, {"2"});
  b.input("x", DType::f32, {"t", "2"});
  onnx_pb::Node& scan = b.node("Scan", {"s", "x"}, {"end", "sums"});
  set_int(scan, "num_scan_inputs", 1);
  onnx_pb::Graph& g = set_graph(scan, "body");
  for (const char* name : {"before", "row"}) g.add_input()->set_name(name);
  ModelBuilder::add(g, "Add", {"before", "row"}, {"after"});
  ModelBuilder::add(g, "Identity", {"after"}, {"sum"});
  for (const char* name : {"after", "sum"}) g.add_output()->set_name(name);
  b.output("end");
  b.output("sums");
  const Imported model = b.import({.dims = {{"t", {0, 64}}}});
  const auto run = [&](const Array& x) {
    return evaluate(model.variants.at(0).function, std::vector{reals({2}, {5, 7}), x});
  };
  EXPECT_EQ(run(counting({0, 2}))[0], reals({2}, {5, 7}));
  EXPECT_EQ(run(counting({0, 2}))[1].dims(), (Integers{0, 2}));
  EXPECT_EQ(run(counting({2, 2}))[1], reals({2, 2}, {5, 8, 7, 11}));
}

// As in PyTorch exports of BERT: a table of 8 positions is sliced to the length and added. Longer
// inputs cannot run, so min(8, n) is n, and the -1 of a Reshape is known even for a batch of 0.
TEST(OpenSizes, ATableThatIsAddedBoundsTheLength) {
  ModelBuilder b;
  b.input("x", DType::f32, {"batch", "n", "6"});
  b.constant("table", counting({8, 6}));
  b.constant("w", counting({3, 2}));
  b.ints("zero", {0});
  b.ints("rest", {-1});
  b.ints("heads", {2});
  onnx_pb::Node& batch = b.node("Shape", {"x"}, {"batches"});
  set_int(batch, "end", 1);
  onnx_pb::Node& length = b.node("Shape", {"x"}, {"length"});
  set_int(length, "start", 1);
  set_int(length, "end", 2);
  b.node("Slice", {"table", "zero", "length", "zero"}, {"rows"});
  b.node("Add", {"x", "rows"}, {"placed"});
  b.node("Concat", {"batches", "length", "heads", "rest"}, {"shape"});
  set_int(*b.model.mutable_graph()->mutable_node(4), "axis", 0);
  set_int(b.node("Reshape", {"placed", "shape"}, {"parts"}), "allowzero", 1);
  b.node("MatMul", {"parts", "w"}, {"y"});
  b.output("y");
  const Imported model = b.import({.dims = {{"batch", {0, 64}}}});
  const Function& f = model.variants.at(0).function;
  EXPECT_EQ(f.params()[0].value.shape()[1].high(), 8);
  EXPECT_EQ(cat(f.results()[0].value.type()), "f32[batch,n,2,2]");
  EXPECT_EQ(evaluate(f, std::vector{counting({0, 3, 6})})[0].dims(), (Integers{0, 3, 2, 2}));
  EXPECT_EQ(evaluate(f, std::vector{counting({2, 8, 6})})[0].dims(), (Integers{2, 8, 2, 2}));
  // A given range is kept, and the check with it.
  const Imported given = b.import({.dims = {{"n", {1, 20}}}});
  EXPECT_EQ(given.variants.at(0).function.params()[0].value.shape()[1].high(), 20);
  EXPECT_THROW(evaluate(given.variants.at(0).function, std::vector{counting({2, 9, 6})}),
               UserError);

  std::ofstream(b.directory() / "test.onnx", std::ios::binary) << b.bytes();
  const ModelCheck c = check_onnx(b.directory() / "test.onnx");
  ASSERT_EQ(c.open_sizes.size(), 2U);
  EXPECT_FALSE(c.open_sizes[0].required);
  EXPECT_TRUE(c.open_sizes[1].required);
  EXPECT_EQ(c.open_sizes[1].high, 8);
}

// ==== initializers

TEST(Initializers, AreReplacedByInputsOfTheirName) {
  ModelBuilder b;
  b.input("x", DType::f32, {"2"});
  b.input("w", DType::f32, {"2"});
  b.constant("w", reals({2}, {10, 20}));
  b.node("Add", {"x", "w"}, {"y"});
  b.output("y");
  EXPECT_EQ(b.run({reals({2}, {1, 2})})[0], reals({2}, {11, 22}));
  const Imported open = b.import({.shapes = {{"w", {2}}}});
  EXPECT_EQ(evaluate(open.variants.at(0).function,
                     std::vector{reals({2}, {1, 2}), reals({2}, {5, 6})})[0],
            reals({2}, {6, 8}));
}

onnx_pb::SparseTensor& sparse(ModelBuilder& b, bool by_axes) {
  onnx_pb::SparseTensor* s = b.model.mutable_graph()->add_sparse_initializer();
  ModelBuilder::fill(s->mutable_values(), "s", reals({2}, {5, 7}));
  ModelBuilder::fill(s->mutable_indices(), "",
                     by_axes ? Array::of<std::int64_t>(DType::i64, {2, 2}, Integers{0, 1, 1, 2})
                             : Array::from_ints(Integers{1, 5}));
  s->add_dims(2);
  s->add_dims(3);
  return *s;
}

ModelBuilder sparse_model() {
  ModelBuilder b;
  b.input("x", DType::f32, {"2", "3"});
  b.node("Add", {"x", "s"}, {"y"});
  b.output("y");
  return b;
}

TEST(Initializers, MayBeSparse) {
  for (bool by_axes : {false, true}) {
    ModelBuilder b = sparse_model();
    sparse(b, by_axes);
    EXPECT_EQ(b.run({counting({2, 3})})[0], reals({2, 3}, {0, 6, 2, 3, 4, 12}));
  }
  ModelBuilder b = sparse_model();
  onnx_pb::Tensor* places = sparse(b, false).mutable_indices();
  places->Clear();
  ModelBuilder::fill(places, "", Array::from_ints(Integers{1, 6}));
  expect_contains(b.failure(), "index 6 is out of range");
  b = sparse_model();
  sparse(b, true).set_dims(1, 2);
  expect_contains(b.failure(), "index 2 at axis 1 is out of range");
  b = sparse_model();
  sparse(b, false).set_dims(0, std::int64_t{1} << 40);
  expect_contains(b.failure(), "its dense form exceeds");
}

// ==== strings and numbers

TEST(TextCasts, NumbersAndBack) {
  auto cast = [](const Array& x, DType to) {
    OneNode n("Cast", {{"x", x}});
    set_int(*n.node, "to", onnx::data_type_of(to));
    return n;
  };
  auto texts_of_all = [](const Array& a) {
    std::vector<std::string> out;
    for (std::int64_t i = 0; i < a.count(); ++i) out.emplace_back(text_at(a, i));
    return out;
  };
  const float f[] = {1.5f, -2e20f, 0.1f, 3, 123456789.0f, 1e-7f, -0.0f, NAN, HUGE_VALF, -HUGE_VALF};
  EXPECT_EQ(texts_of_all(cast(Array::of<float>(DType::f32, {10}, f), DType::text).run()[0]),
            (std::vector<std::string>{"1.5", "-2e+20", "0.1", "3", "1.2345679e+08", "1e-07", "-0",
                                      "NaN", "INF", "-INF"}));
  EXPECT_EQ(texts_of_all(cast(Array::from_ints(Integers{3, -5}), DType::text).run()[0]),
            (std::vector<std::string>{"3", "-5"}));
  const std::vector<std::string_view> numbers = {"1.5", "-2e3", " inf", "NaN", "+7", "1E-2"};
  const Array back = cast(text_array({6}, numbers), DType::f32).run()[0];
  const double expected[] = {1.5, -2000, HUGE_VAL, NAN, 7, 0.01f};
  for (std::int64_t i = 0; i < 6; ++i)
    EXPECT_TRUE(back.real(i) == expected[i] ||
                (std::isnan(expected[i]) && std::isnan(back.real(i))))
        << numbers[std::size_t(i)] << " is " << back.real(i);
  const std::vector<std::string_view> whole = {"12", "-9223372036854775808"};
  EXPECT_EQ(cast(text_array({2}, whole), DType::i64).run()[0].integer(1),
            std::numeric_limits<std::int64_t>::min());
  for (std::string_view bad : {"", "1.5x", "--1", "+-1", "one", "0x10"}) {
    const OneNode n = cast(text_array({1}, std::span(&bad, 1)), DType::f64);
    expect_contains(n.refusal(), "is not a number");
  }
  const std::string_view large = "9223372036854775808";
  expect_contains(cast(text_array({1}, std::span(&large, 1)), DType::i64).refusal(),
                  "is out of range");
}

TEST(GroupNormalization, BeforeOpset21HasOneScaleForEachGroup) {
  const Array x = counting({1, 4, 2, 1});
  OneNode old("GroupNormalization",
              {{"x", x}, {"s", reals({2}, {2, 3}), true}, {"b", reals({2}, {1, -1}), true}}, 1, 18);
  OneNode now(
      "GroupNormalization",
      {{"x", x}, {"s", reals({4}, {2, 2, 3, 3}), true}, {"b", reals({4}, {1, 1, -1, -1}), true}});
  for (OneNode* n : {&old, &now}) set_int(*n->node, "num_groups", 2);
  EXPECT_EQ(old.run()[0], now.run()[0]);
}

}  // namespace
}  // namespace hone
