#include "import/import.h"

#include <chrono>
#include <ctime>

#include "support.h"

namespace hone {
namespace {

using ModelPb = onnx_pb::Model;

ModelBuilder unary(const std::string& op, std::int64_t opset = 21) {
  ModelBuilder b(opset);
  b.input("x", DType::f32, {"2", "3"});
  b.node(op, {"x"}, {"y"});
  b.output("y");
  return b;
}

// ==== what is not supported

TEST(Unsupported, SevenNodesAreSevenLines) {
  ModelBuilder b;
  b.input("x", DType::f32, {"2", "3"});
  b.node("Rellu", {"x"}, {"a"});
  b.node("Relu", {"x"}, {"ok"});
  b.node("Stringify", {"a", "x"}, {"b"});
  b.node("NoSuchThing", {"b"}, {"c"}).set_domain("com.example");
  onnx_pb::Node& n = b.node("If", {"cond"}, {"d"});
  b.constant("cond", Array::scalar_int(1, DType::b1));
  for (const char* branch : {"then_branch", "else_branch"}) {
    onnx_pb::Graph& g = set_graph(n, branch);
    ModelBuilder::add(g, "Sofmax", {"x"}, {"z"});
    g.add_output()->set_name("z");
  }
  b.node("TanH", {"d"}, {"e"});
  set_int(b.node("Relu", {"x"}, {"f"}), "speed", 3);
  b.output("e");
  std::string message = b.failure();
  expect_contains(message, "test.onnx: 7 parts of the model are not supported:");
  expect_contains(message, "node 0 'Rellu_0': Rellu of ai.onnx opset 21; nearest supported: Relu");
  // No operator has a similar name.
  expect_contains(message, "node 2 'Stringify_2': Stringify of ai.onnx opset 21\n");
  expect_contains(message, "node 3 'NoSuchThing_3': NoSuchThing of com.example opset 0");
  expect_contains(message,
                  "node 4.then_branch.0 'Sofmax_0': Sofmax of ai.onnx opset 21; nearest "
                  "supported: Softmax");
  expect_contains(message, "node 4.else_branch.0 'Sofmax_0'");
  expect_contains(message, "node 5 'TanH_5': TanH of ai.onnx opset 21; nearest supported: Tanh");
  expect_contains(message, "node 6 'Relu_6' (Relu): attribute 'speed' does not exist");
}

TEST(Unsupported, AnOperatorOfAnotherOpsetIsNamed) {
  expect_contains(unary("Gelu", 13).failure(),
                  "node 0 'Gelu_0': Gelu of ai.onnx opset 13; other opsets of it are supported");
  EXPECT_EQ(unary("Gelu", 20).import().variants.size(), 1u);
}

TEST(Unsupported, ADeadBranchNeedsNoSupport) {
  ModelBuilder b;
  b.input("x", DType::f32, {"2"});
  b.constant("cond", Array::scalar_int(0, DType::b1));
  onnx_pb::Node& n = b.node("If", {"cond"}, {"y"});
  onnx_pb::Graph &yes = set_graph(n, "then_branch"), &no = set_graph(n, "else_branch");
  ModelBuilder::add(yes, "NotThere", {"x"}, {"z"});
  yes.add_output()->set_name("z");
  ModelBuilder::add(no, "Neg", {"x"}, {"z"});
  no.add_output()->set_name("z");
  b.output("y");
  EXPECT_EQ(b.run({reals({2}, {1, 2})})[0], reals({2}, {-1, -2}));
}

TEST(Unsupported, ModelsAsAWhole) {
  expect_contains(unary("Relu", 29).failure(), "uses opset 29, expected at most 28");
  ModelBuilder empty;
  empty.model.clear_graph();
  expect_contains(empty.failure(), "contains no graph");
  ModelBuilder complex = unary("Relu");
  complex.model.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->set_elem_type(14);
  expect_contains(complex.failure(), "input 'x': COMPLEX64 tensors are not supported");
  ModelBuilder sequence = unary("Relu");
  sequence.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_sequence_type();
  expect_contains(sequence.failure(),
                  "input 'x': a sequence or optional of unknown length is not supported");
  ModelBuilder shapeless = unary("Relu");
  shapeless.model.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->clear_shape();
  expect_contains(shapeless.failure(),
                  "input 'x' has no shape in the model; give its sizes (--shapes x:");
  const Array x = reals({2, 3}, {1, -2, 3, -4, 5, -6}), y = reals({2, 3}, {1, 0, 3, 0, 5, 0});
  for (const ImportOptions& options :
       {ImportOptions{.shapes = {{"x", {2, 3}}}}, ImportOptions{.ranks = {{"x", 2}}}})
    EXPECT_EQ(evaluate(shapeless.import(options).variants[0].function, std::vector{x})[0], y);
}

TEST(Unsupported, UnusedOutputsOnly) {
  ModelBuilder b;
  b.input("x", DType::f32, {"1", "1", "4"});
  set_ints(b.node("MaxPool", {"x"}, {"y", ""}), "kernel_shape", {2});
  b.output("y");
  EXPECT_EQ(b.import().variants.size(), 1u);
  b.node("Relu", {"y"}, {"z", "mask"});
  expect_contains(b.failure(), "(Relu): output 1 ('mask')");
}

// ==== what is wrong

TEST(Wrong, EveryWrongNodeIsNamedOnce) {
  ModelBuilder b;
  b.input("x", DType::f32, {"2", "3"});
  b.input("w", DType::f32, {"4", "5"});
  b.node("MatMul", {"x", "w"}, {"a"});
  b.node("Relu", {"a"}, {"after"});  // depends on the failure: not named
  b.node("Add", {"x", "w"}, {"b"});
  b.output("b");
  std::string message = b.failure();
  expect_contains(message, "2 parts of the model are wrong:");
  expect_contains(message, "node 0 'MatMul_0' (MatMul): inner sizes");
  expect_contains(message, "node 2 'Add_2' (Add): shapes [2,3] and [4,5] do not broadcast");
  EXPECT_EQ(message.find("Relu"), std::string::npos) << message;
}

TEST(Wrong, NamesThatAreNotDefined) {
  ModelBuilder b = unary("Relu");
  b.model.mutable_graph()->mutable_node(0)->set_input(0, "nowhere");
  expect_contains(b.failure(),
                  "node 0 'Relu_0' (Relu): input 'nowhere' is not computed by any "
                  "node and is not an input or initializer");
  ModelBuilder output = unary("Relu");
  output.output("missing");
  expect_contains(output.failure(), "graph output 'missing' is not computed by any node");
}

TEST(Wrong, CyclesAreSpelledOut) {
  ModelBuilder b;
  b.input("x", DType::f32, {"2"});
  b.node("Add", {"x", "c"}, {"a"});
  b.node("Relu", {"a"}, {"b"});
  b.node("Neg", {"b"}, {"c"});
  b.output("c");
  expect_contains(b.failure(),
                  "input 'c' is part of a cycle: node 0 -> node 1 -> node 2 -> node 0");
  ModelBuilder self = unary("Relu");
  self.model.mutable_graph()->mutable_node(0)->set_input(0, "y");
  expect_contains(self.failure(), "is the node's own result: the graph has a cycle");
  ModelBuilder late;
  late.input("x", DType::f32, {"2"});
  late.node("Relu", {"a"}, {"b"});
  late.node("Neg", {"x"}, {"a"});
  late.output("b");
  EXPECT_EQ(late.run({reals({2}, {1, -2})})[0], reals({2}, {0, 2}));
}

// Converters write such files, and ONNX Runtime reads them.
TEST(Import, NodesInAnyOrder) {
  ModelBuilder b;
  b.input("c", DType::b1, {});
  b.input("x", DType::f32, {"2"});
  onnx_pb::Node& n = b.node("If", {"c"}, {"y"});
  onnx_pb::Graph &yes = set_graph(n, "then_branch"), &no = set_graph(n, "else_branch");
  ModelBuilder::add(yes, "Neg", {"inner"}, {"y1"});
  ModelBuilder::add(yes, "Relu", {"late"}, {"inner"});
  ModelBuilder::add(no, "Identity", {"late"}, {"y2"});
  yes.add_output()->set_name("y1");
  no.add_output()->set_name("y2");
  b.node("Exp", {"missing"}, {"unused"});
  b.node("Neg", {"x"}, {"late"});
  b.output("y");
  expect_contains(b.failure(), "node 1 'Exp_1' (Exp): input 'missing' is not computed by any node");
  b.model.mutable_graph()->mutable_node(1)->set_input(0, "late");
  const Array x = reals({2}, {1, -2});
  EXPECT_EQ(b.run({Array::scalar_int(1, DType::b1), x})[0], reals({2}, {-0.0f, -2}));
  EXPECT_EQ(b.run({Array::scalar_int(0, DType::b1), x})[0], reals({2}, {-1, 2}));
  const Function f = b.import().variants.at(0).function;
  EXPECT_EQ(f.graph().origins(f.result(0).node())[0].index, 0);
}

TEST(Wrong, NamesThatAreDefinedTwice) {
  ModelBuilder b = unary("Relu");
  b.node("Neg", {"x"}, {"y"});
  expect_contains(b.failure(), "node 1 'Neg_1' (Neg): value 'y' is defined twice");
  ModelBuilder input = unary("Relu");
  input.input("x", DType::f32, {"1"});
  expect_contains(input.failure(), "value 'x' is defined twice");
}

TEST(Wrong, AttributesOfAnotherType) {
  ModelBuilder b = unary("Flatten");
  set_real(*b.model.mutable_graph()->mutable_node(0), "axis", 1);
  expect_contains(b.failure(), "(Flatten): attribute 'axis' is a float, expected an integer");
  ModelBuilder odd = unary("Flatten");
  onnx_pb::Attribute* a = odd.model.mutable_graph()->mutable_node(0)->add_attribute();
  a->set_name("axis");
  a->set_type(77);
  expect_contains(odd.failure(), "attribute 'axis' is of the unknown type 77, expected an integer");
  ModelBuilder twice = unary("Flatten");
  for (int i : {0, 1}) set_int(*twice.model.mutable_graph()->mutable_node(0), "axis", i);
  expect_contains(twice.failure(), "attribute 'axis' does not exist in opset 21, or appears twice");
}

TEST(Wrong, BrokenInitializersAreNamed) {
  ModelBuilder b = unary("Relu");
  for (const char* name : {"a", "b"}) {
    b.constant(name, reals({2}, {1, 2}));
    b.model.mutable_graph()->mutable_initializer(name[0] - 'a')->set_raw_data("xyz");
  }
  std::string message = b.failure();
  expect_contains(message, "2 parts of the model are wrong:");
  expect_contains(message, "tensor 'a': it has 3 bytes, expected 8");
  expect_contains(message, "tensor 'b': it has 3 bytes, expected 8");
}

// Attributes with wrong values: refused by name, never a crash.
struct Lie {
  const char* op;
  std::vector<std::string> inputs;
  void (*set)(onnx_pb::Node&);
  const char* message;
};

TEST(Wrong, AttributesThatLie) {
  const Lie lies[] = {
      {"Conv",
       {"x", "w"},
       [](auto& n) { set_ints(n, "strides", {0, 1}); },
       "attribute 'strides' contains 0"},
      {"Conv",
       {"x", "w"},
       [](auto& n) { set_ints(n, "strides", {1}); },
       "attribute 'strides' has 1 entry"},
      {"Conv",
       {"x", "w"},
       [](auto& n) { set_ints(n, "dilations", {1, -1}); },
       "attribute 'dilations' contains -1"},
      {"Conv",
       {"x", "w"},
       [](auto& n) { set_ints(n, "pads", {1, 1}); },
       "attribute 'pads' has 2 entries"},
      {"Conv",
       {"x", "w"},
       [](auto& n) { set_ints(n, "pads", {0, 0, 0, -1}); },
       "'pads' contains -1"},
      {"Conv", {"x", "w"}, [](auto& n) { set_int(n, "group", 0); }, "attribute 'group' is 0"},
      {"Conv",
       {"x", "w"},
       [](auto& n) { set_int(n, "group", 3); },
       "channels of the weights (times 3 groups)"},
      {"Conv", {"x", "w"}, [](auto& n) { set_ints(n, "kernel_shape", {2, 2}); }, "kernel_shape"},
      {"Conv",
       {"x", "w"},
       [](auto& n) { set_text(n, "auto_pad", "MAYBE"); },
       "attribute 'auto_pad' is 'MAYBE'"},
      {"Conv", {"x", "x0"}, [](auto&) {}, "expected at least three axes"},
      {"Conv", {"x"}, [](auto&) {}, "input 1 is missing"},
      {"Relu", {"x", "w"}, [](auto&) {}, "input 1 (value 'w') does not exist in opset"},
      {"MaxPool", {"x"}, [](auto&) {}, "attribute 'kernel_shape' is missing"},
      {"MaxPool", {"x"}, [](auto& n) { set_ints(n, "kernel_shape", {0, 1}); }, "contains 0"},
      {"MaxPool", {"x"}, [](auto& n) { set_ints(n, "kernel_shape", {1ll << 62, 1}); }, "MaxPool"},
      {"MaxPool", {"x"}, [](auto& n) { set_ints(n, "kernel_shape", {2}); }, "1 spatial axis"},
      {"AveragePool", {"x0"}, [](auto& n) { set_ints(n, "kernel_shape", {2}); }, "1 spatial axis"},
      {"Softmax", {"x"}, [](auto& n) { set_int(n, "axis", 4); }, "axis is 4, expected -4 to 3"},
      {"Transpose",
       {"x"},
       [](auto& n) { set_ints(n, "perm", {0, 1, 2, 2}); },
       "expected each axis of f32[1,2,8,8] once"},
      {"Transpose",
       {"x"},
       [](auto& n) { set_ints(n, "perm", {0}); },
       "expected each axis of f32[1,2,8,8] once"},
      {"Concat", {}, [](auto& n) { set_int(n, "axis", 0); }, "no inputs"},
      {"Flatten", {"x"}, [](auto& n) { set_int(n, "axis", 5); }, "attribute 'axis' is 5"},
      {"Reshape", {"x", "neg"}, [](auto&) {}, "more than one -1"},
      {"Reshape", {"x", "big"}, [](auto&) {}, ""},
      {"Slice", {"x", "one", "neg"}, [](auto&) {}, "expected equal numbers"},
      {"Slice", {"x", "one", "one", "one", "zero"}, [](auto&) {}, "step at axis 1 is 0"},
      {"Slice", {"x", "neg", "neg", "neg"}, [](auto&) {}, "name one axis twice"},
      {"Slice", {"x", "one", "one", "nine"}, [](auto&) {}, "axis is 9, expected -4 to 3"},
      {"Split", {"x", "neg"}, [](auto&) {}, "Split"},
      {"Pad", {"x", "one"}, [](auto&) {}, "'pads' has 1 element, expected 8"},
      {"Pad", {"x", "one", "", "neg"}, [](auto&) {}, "name one axis twice"},
      {"Squeeze", {"x", "one"}, [](auto&) {}, "axis 1"},
      {"Unsqueeze", {"x"}, [](auto&) {}, "('axes') is missing"},
      {"Tile", {"x", "one"}, [](auto&) {}, "'repeats' has 1 element, expected 4"},
      {"Expand", {"x", "five"}, [](auto&) {}, "do not broadcast"},
      {"ConstantOfShape", {"neg"}, [](auto&) {}, ""},
      {"ConstantOfShape", {"huge"}, [](auto&) {}, ""},
      {"ConstantOfShape", {"least"}, [](auto&) {}, ""},
      {"Range", {"one", "one", "zero"}, [](auto&) {}, "('delta') is 0"},
      {"Range", {"neg", "one", "one"}, [](auto&) {}, "i64[2] has 2 elements"},
      {"ReduceSum", {"x", "neg"}, [](auto&) {}, "name one axis twice"},
      {"Gemm", {"x", "x"}, [](auto&) {}, "expected two matrices"},
      {"Cast", {"x"}, [](auto&) {}, "attribute 'to' is missing"},
      {"Cast", {"x"}, [](auto& n) { set_int(n, "to", 999); }, "attribute 'to' is type 999"},
      {"Gelu",
       {"x"},
       [](auto& n) { set_text(n, "approximate", "so"); },
       "attribute 'approximate' is 'so'"},
      {"LSTM", {"x", "x", "x"}, [](auto&) {}, "expected three axes"},
      {"Constant", {}, [](auto&) {}, "Constant"},
      {"Trilu", {"x0"}, [](auto&) {}, "expected at least two axes"},
      {"Gather", {"x", "one"}, [](auto& n) { set_int(n, "axis", -5); }, "axis is -5"},
      {"If", {"x"}, [](auto&) {}, "then_branch"},
      {"InstanceNormalization", {"x0", "x0", "x0"}, [](auto&) {}, "expected at least two axes"},
      {"GroupNormalization", {"x", "x", "x"}, [](auto&) {}, "attribute 'num_groups' is 0"},
      {"DepthToSpace", {"x"}, [](auto&) {}, "blocksize is 0"},
      {"OneHot", {"one", "neg", "x0"}, [](auto&) {}, "has 2 elements"},
  };
  for (const Lie& lie : lies) {
    ModelBuilder b;
    b.input("x", DType::f32, {"1", "2", "8", "8"});
    b.input("x0", DType::f32, {"4"});
    b.input("w", DType::f32, {"4", "2", "3", "3"});
    b.ints("neg", {-1, -1});
    b.ints("one", {1});
    b.ints("zero", {0});
    b.ints("nine", {9});
    b.ints("five", {5, 5});
    b.ints("big", {1ll << 62, 1ll << 62});
    b.ints("huge", {1ll << 40, 1ll << 40});
    b.ints("least", {std::numeric_limits<std::int64_t>::min()});
    lie.set(b.node(lie.op, lie.inputs, {"y"}));
    b.output("y");
    std::string message = b.failure();
    SCOPED_TRACE(cat(lie.op, ": ", message));
    EXPECT_NE(message, "imported without an error");
    expect_contains(message, cat("(", lie.op, ")"));
    expect_contains(message, lie.message);
  }
}

// ==== sizes

TEST(Sizes, NamesAreMadeFitAndKeptApart) {
  ModelBuilder b;
  b.input("in put", DType::f32, {"a-b", "a_b", "", "3x"});
  b.node("Relu", {"in put"}, {"y"});
  b.output("y");
  Imported m = b.import();
  // "3x" starts with a digit, so the builder would take it for a number: 3.
  EXPECT_EQ(cat(m.variants[0].function.param(0).type()), "f32[a_b,a_b_2,in_put_d2,3]");
}

TEST(Sizes, OptionsGiveRangesAndNumbers) {
  ModelBuilder b;
  b.input("x", DType::f32, {"n", ""});
  b.node("Relu", {"x"}, {"y"});
  b.output("y");
  ImportOptions options;
  options.dims["n"] = {2, 16};
  options.dims["x_d1"] = {5, 5};
  Type t = b.import(options).variants[0].function.param(0).type();
  EXPECT_EQ(cat(t), "f32[n,5]");
  EXPECT_EQ(t.shape[0].low(), 2);
  EXPECT_EQ(t.shape[0].high(), 16);
  options.dims["m"] = {1, 2};
  expect_contains(b.failure(options),
                  "size 'm' is given, but the model has no such size; its open sizes are n, x_d1");
  options.dims = {{"n", {3, 2}}};
  expect_contains(b.failure(options), "size 'n': the range is 3 to 2");
}

// Exporters write -1 for the width of a head, next to a batch and a length that may be 0.
TEST(Sizes, AnInferredSizeDoesNotDivideByZero) {
  ModelBuilder b;
  b.input("x", DType::f32, {"n", "m", "24"});
  b.node("Shape", {"x"}, {"s"});
  b.ints("both", {0, 1});
  b.node("Gather", {"s", "both"}, {"nm"});
  b.ints("rest", {-1, 3});
  b.node("Concat", {"nm", "rest"}, {"heads"});
  set_int(*b.model.mutable_graph()->mutable_node(2), "axis", 0);
  b.node("Reshape", {"x", "heads"}, {"y"});
  b.ints("one", {1});
  b.node("Gather", {"s", "one"}, {"m"});
  b.ints("any", {-1});
  b.node("Concat", {"m", "any"}, {"flat"});
  set_int(*b.model.mutable_graph()->mutable_node(5), "axis", 0);
  b.node("Reshape", {"x", "flat"}, {"z"});
  b.output("y");
  b.output("z");
  ImportOptions options;
  options.dims = {{"n", {0, 8}}, {"m", {0, 8}}};
  const Function f = b.import(options).variants[0].function;
  EXPECT_EQ(cat(f.result(0).type()), "f32[n,m,8,3]");
  EXPECT_EQ(cat(f.result(1).type()), "f32[m,(24*n)]");
  const std::vector<Array> empty = evaluate(f, std::vector{Array::zeros(DType::f32, {2, 0, 24})});
  EXPECT_EQ(empty[0].dims(), (std::vector<std::int64_t>{2, 0, 8, 3}));
}

TEST(Sizes, ShapeArithmeticFollowsThroughTheGraph) {
  ModelBuilder b;
  b.input("x", DType::f32, {"n", "6", "4"});
  b.node("Shape", {"x"}, {"s"});
  b.ints("zero", {0});
  b.ints("two", {2});
  b.node("Gather", {"s", "zero"}, {"n"});
  b.node("Mul", {"n", "two"}, {"n2"});
  b.ints("rest", {-1, 3});
  b.node("Concat", {"n2", "rest"}, {"shape"});
  set_int(*b.model.mutable_graph()->mutable_node(3), "axis", 0);
  b.node("Reshape", {"x", "shape"}, {"y"});
  b.output("y");
  Imported m = b.import();
  EXPECT_EQ(cat(m.variants[0].function.result(0).type()), "f32[(2*n),4,3]");
  EXPECT_TRUE(m.variants[0].function.graph().checks().empty());
}

TEST(Sizes, BoundsOfUnknownSignArePlaced) {
  ModelBuilder b;
  b.input("x", DType::f32, {"n"});
  b.ints("three", {3});
  b.ints("end", {std::numeric_limits<std::int64_t>::max()});
  b.node("Shape", {"x"}, {"n"});
  b.node("Sub", {"n", "three"}, {"start"});  // negative for n < 3: counted from the back
  b.node("Slice", {"x", "start", "end"}, {"y"});
  b.output("y");
  EXPECT_EQ(b.run({reals({5}, {0, 1, 2, 3, 4})})[0], reals({3}, {2, 3, 4}));
  EXPECT_EQ(b.run({reals({3}, {0, 1, 2})})[0], reals({3}, {0, 1, 2}));
  EXPECT_EQ(b.run({reals({2}, {0, 1})})[0], reals({1}, {1}));  // start = -1
  EXPECT_EQ(b.run({reals({1}, {7})})[0], reals({1}, {7}));     // start = -2, clamped
}

// Compared with a plain loop for all starts, ends and steps. Other than in NumPy, a start before
// the axis is its first element also where the step is negative.
TEST(Sizes, SliceTakesWhatALoopTakes) {
  for (std::int64_t start = -6; start <= 6; ++start)
    for (std::int64_t end = -6; end <= 6; ++end)
      for (std::int64_t step : {-3, -2, -1, 1, 2, 3}) {
        ModelBuilder b;
        b.input("x", DType::f32, {"n"});
        b.ints("s", {start});
        b.ints("e", {end});
        b.ints("a", {0});
        b.ints("t", {step});
        b.node("Slice", {"x", "s", "e", "a", "t"}, {"y"});
        b.output("y");
        const std::int64_t n = 4;
        const auto clamp = [&](std::int64_t at, std::int64_t least) {
          return std::clamp<std::int64_t>(at < 0 ? at + n : at, step > 0 ? 0 : least,
                                          step > 0 ? n : n - 1);
        };
        const std::int64_t last = clamp(end, -1);
        std::vector<float> expected;
        for (std::int64_t i = clamp(start, 0); step > 0 ? i < last : i > last; i += step)
          expected.push_back(static_cast<float>(i));
        Array got = b.run({reals({4}, {0, 1, 2, 3})})[0];
        EXPECT_EQ(got, reals({static_cast<std::int64_t>(expected.size())}, expected))
            << start << ":" << end << ":" << step;
      }
}

TEST(Sizes, FarBoundsOfSliceMeanTheEnds) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(),
                         least = std::numeric_limits<std::int64_t>::min();
  auto slice = [](std::int64_t start, std::int64_t end, std::int64_t step) {
    ModelBuilder b;
    b.input("x", DType::f32, {"n"});
    b.ints("s", {start});
    b.ints("e", {end});
    b.ints("a", {-1});
    b.ints("t", {step});
    b.node("Slice", {"x", "s", "e", "a", "t"}, {"y"});
    b.output("y");
    return b.run({reals({3}, {0, 1, 2})})[0];
  };
  EXPECT_EQ(slice(least, most, 1), reals({3}, {0, 1, 2}));
  EXPECT_EQ(slice(most, least, -1), reals({3}, {2, 1, 0}));
  EXPECT_EQ(slice(1, most - 1, 1), reals({2}, {1, 2}));
  EXPECT_EQ(slice(-2, -most, -1), reals({2}, {1, 0}));
}

// ==== size assumptions

TEST(Variants, ASizeThatDecidesARankForks) {
  ModelBuilder b;
  b.input("x", DType::f32, {"n", "3"});
  b.node("Squeeze", {"x"}, {"y"});
  b.output("y");
  Imported m = b.import();
  ASSERT_EQ(m.variants.size(), 2u);
  EXPECT_EQ(m.variants[0].function.result(0).rank(), 1);
  EXPECT_EQ(m.variants[1].function.result(0).rank(), 2);
  std::vector<Array> one = {reals({1, 3}, {1, 2, 3})}, two = {reals({2, 3}, {1, 2, 3, 4, 5, 6})};
  EXPECT_EQ(variant_for(m, one), &m.variants[0]);
  EXPECT_EQ(variant_for(m, two), &m.variants[1]);
  EXPECT_EQ(evaluate(m.variants[0].function, one)[0], reals({3}, {1, 2, 3}));
  EXPECT_EQ(evaluate(m.variants[1].function, two)[0].dims(), (std::vector<std::int64_t>{2, 3}));
}

TEST(Variants, TooManyAreRefused) {
  ModelBuilder b;
  b.input("x", DType::f32, {"a", "b", "c", "d", "e"});
  b.node("Squeeze", {"x"}, {"y"});
  b.output("y");
  expect_contains(b.failure(), "the model would need more than 16 variants");
  ImportOptions options;
  options.dims["a"] = {2, 9};  // never 1
  EXPECT_EQ(b.import(options).variants.size(), 16u);
}

TEST(Variants, AWrongNodeIsReportedBeforeQuestionsAreAsked) {
  ModelBuilder b;
  b.input("x", DType::f32, {"a", "b", "c", "d", "e"});
  b.input("w", DType::f32, {"2", "3"});
  b.node("MatMul", {"w", "w"}, {"bad"});
  b.node("Squeeze", {"x"}, {"y"});
  b.output("y");
  expect_contains(b.failure(), "node 0 'MatMul_0' (MatMul)");
}

// ==== limits

TEST(Limits, AChainOfAHundredThousandNodesIsReadInLinearTime) {
  auto seconds = [](int length) {
    ModelBuilder b;
    b.input("x0", DType::f32, {"2"});
    for (int i = 0; i < length; ++i)
      b.node(i % 2 ? "Relu" : "Neg", {cat("x", i)}, {cat("x", i + 1)});
    b.output(cat("x", length));
    std::clock_t start = std::clock();
    EXPECT_EQ(b.import().variants.size(), 1u);
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  seconds(1000);
  double small = seconds(10'000), large = seconds(100'000);
  EXPECT_LT(large, 60 * small)  // quadratic would be 100
      << small << " s for 10,000, " << large << " s for 100,000";
}

TEST(Limits, NodesAreBounded) {
  ModelBuilder b = unary("Relu");
  b.node("Neg", {"y"}, {"z"});
  ImportOptions options;
  options.most_nodes = 1;
  expect_contains(b.failure(options), "more than 1 nodes");
}

TEST(Limits, BombsOfSizeAreNotBuilt) {
  ModelBuilder b;
  b.input("x", DType::f32, {"2"});
  b.ints("shape", {1ll << 30, 1ll << 30});
  b.node("ConstantOfShape", {"shape"}, {"a"});
  b.ints("repeats", {1ll << 40});
  b.node("Tile", {"x", "repeats"}, {"b"});
  for (int i = 0; i < 50; ++i) {
    set_int(
        b.node("Concat", {cat("b", i ? cat(i) : ""), cat("b", i ? cat(i) : "")}, {cat("b", i + 1)}),
        "axis", 0);
  }
  b.output("a");
  auto start = std::chrono::steady_clock::now();
  b.failure();  // either only types are inferred, or a size does not fit; both must be quick
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(Limits, DumpNamesWhatIsMissing) {
  ModelBuilder b = unary("Relu");
  ImportOptions options;
  options.dump = {"nothing"};
  expect_contains(b.failure(options), "dump: the model has no value 'nothing'");
}

// ==== old files

TEST(OldFiles, TheOldestHaveNoOpset) {
  ModelBuilder b = unary("Relu");
  b.model.clear_opset_import();
  b.model.set_ir_version(2);
  EXPECT_EQ(b.run({Array::zeros(DType::f32, {2, 3})})[0].dims(), (std::vector<std::int64_t>{2, 3}));
  b.model.set_ir_version(8);
  expect_contains(b.failure(), "Relu of ai.onnx opset 0");
}

TEST(OldFiles, BroadcastByAttribute) {
  ModelBuilder b(6);
  b.input("x", DType::f32, {"1", "2", "2"});
  b.constant("w", reals({2}, {10, 20}));
  onnx_pb::Node& n = b.node("Add", {"x", "w"}, {"y"});
  set_int(n, "broadcast", 1);
  set_int(n, "axis", 1);
  b.output("y");
  EXPECT_EQ(b.run({reals({1, 2, 2}, {1, 2, 3, 4})})[0], reals({1, 2, 2}, {11, 12, 23, 24}));
}

TEST(OldFiles, SoftmaxBeforeOpset13TakesAllAxesAsOne) {
  auto softmax = [](std::int64_t opset) {
    ModelBuilder b(opset);
    b.input("x", DType::f32, {"1", "2", "2"});
    b.node("Softmax", {"x"}, {"y"});
    b.output("y");
    return numbers_of(b.run({Array::zeros(DType::f32, {1, 2, 2})})[0])[0];
  };
  EXPECT_FLOAT_EQ(static_cast<float>(softmax(9)), 0.25f);
  EXPECT_FLOAT_EQ(static_cast<float>(softmax(13)), 0.5f);
}

TEST(OldFiles, SliceClipPadAndUnsqueezeByAttribute) {
  ModelBuilder b(9);
  b.input("x", DType::f32, {"4"});
  onnx_pb::Node& slice = b.node("Slice", {"x"}, {"a"});
  set_ints(slice, "starts", {1});
  set_ints(slice, "ends", {9223372036854775807});
  onnx_pb::Node& clip = b.node("Clip", {"a"}, {"b"});
  set_real(clip, "max", 2.5f);
  onnx_pb::Node& pad = b.node("Pad", {"b"}, {"c"});
  set_ints(pad, "pads", {1, 0});
  set_real(pad, "value", 9);
  set_ints(b.node("Unsqueeze", {"c"}, {"y"}), "axes", {0});
  b.output("y");
  EXPECT_EQ(b.run({reals({4}, {0, 1, 2, 3})})[0], reals({1, 4}, {9, 1, 2, 2.5f}));
}

}  // namespace
}  // namespace hone
