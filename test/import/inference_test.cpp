// Dtypes, ranks and sizes of results, and invalid nodes: reduced from models of the ONNX tests for
// shape inference (tools/shapes).
#include <cmath>
#include <limits>

#include "one_node.h"

namespace hone {
namespace {

std::string type_of(const ModelBuilder& b) {
  return cat(b.import().variants.at(0).function.result(0).type());
}

Array whole(DType dtype, const std::vector<std::int64_t>& values) {
  Array a = Array::zeros(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::int64_t i = 0; i < a.count(); ++i)
    a.set_integer(i, values[static_cast<std::size_t>(i)]);
  return a;
}

// ==== sizes

TEST(Inference, CenterCropPadGivesTheSizeThatIsAsked) {
  ModelBuilder b;
  b.input("x", DType::f32, {"20", "w", "3"});
  b.ints("sizes", {10, 8});
  set_ints(b.node("CenterCropPad", {"x", "sizes"}, {"y"}), "axes", {0, 1});
  b.output("y");
  EXPECT_EQ(type_of(b), "f32[10,8,3]");
}

TEST(Inference, RegionsAreAsManyAsTheirImages) {
  ModelBuilder b;
  b.input("x", DType::f32, {"n", "c", "8", "8"});
  b.input("rois", DType::f32, {"r", "4"});
  b.input("images", DType::i64, {"15"});
  b.node("RoiAlign", {"x", "rois", "images"}, {"y"});
  b.output("y");
  EXPECT_EQ(type_of(b), "f32[15,c,1,1]");
}

TEST(Inference, ABatchNormOfOneAxisHasOneChannel) {
  const Array x = reals({3}, {0, 1, 5}), one = reals({1}, {1}), two = reals({1}, {2});
  OneNode n("BatchNormalization", {{"x", x}, {"s", two}, {"b", one}, {"m", one}, {"v", one}});
  set_real(*n.node, "epsilon", 0);
  EXPECT_EQ(n.run()[0], reals({3}, {-1, 1, 9}));
  OneNode training("BatchNormalization", {{"x", x}, {"s", two}, {"b", one}, {"m", one}, {"v", one}},
                   3);
  set_int(*training.node, "training_mode", 1);
  const std::vector<Array> out = training.run();
  EXPECT_EQ(out[0].dims(), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(out[1].dims(), (std::vector<std::int64_t>{1}));
  EXPECT_NEAR(out[1].real(0), 0.9 + 0.1 * 2, 1e-6);  // the mean of 0, 1 and 5
}

TEST(Inference, MaxRoiPoolHasItsPooledShape) {
  ModelBuilder b;
  b.input("x", DType::f16, {"n", "c", "h", "w"});
  b.input("rois", DType::f16, {"r", "5"});
  set_ints(b.node("MaxRoiPool", {"x", "rois"}, {"y"}), "pooled_shape", {3, 2});
  b.output("y");
  EXPECT_EQ(type_of(b), "f16[r,c,3,2]");
}

// ==== values

// "Reduction over an empty set of values yields undefined": NaN as in the ONNX reference, and 0 for
// integers.
TEST(Inference, AMeanOfNothingIsNaN) {
  for (const bool is_constant : {false, true}) {
    OneNode n("ReduceMean", {{"x", Array::zeros(DType::f32, {0, 2}), is_constant},
                             {"a", whole(DType::i64, {0}), true}});
    const Array y = n.run()[0];
    EXPECT_EQ(y.dims(), (std::vector<std::int64_t>{1, 2}));
    EXPECT_TRUE(std::isnan(y.real(0)) && std::isnan(y.real(1)));
    OneNode of_integers("ReduceMean", {{"x", Array::zeros(DType::i32, {0, 2}), is_constant},
                                       {"a", whole(DType::i64, {0}), true}});
    EXPECT_EQ(numbers_of(of_integers.run()[0]), (std::vector<double>{0, 0}));
  }
}

TEST(Inference, APadKeepsTheBitsOfNaN) {
  const auto codes = [](const std::vector<std::int64_t>& values) {
    const Array bytes = whole(DType::u8, values);
    return Array(DType::f8e5m2, bytes.dims(), bytes.storage());
  };
  for (const bool is_constant : {false, true}) {
    OneNode n("Pad",
              {{"x", codes({0x7d, 0xff, 0x3c, 0xfe}), is_constant},
               {"p", whole(DType::i64, {1, 0}), true}},
              1, 23);
    const Array y = n.run()[0];
    EXPECT_EQ(Array(DType::u8, y.dims(), y.storage()),
              whole(DType::u8, {0, 0x7d, 0xff, 0x3c, 0xfe}));
  }
}

// ==== invalid nodes

TEST(Inference, WhatDoesNotFitIsRefused) {
  const auto refusal = [](const std::string& op, const std::vector<Given>& given,
                          const std::function<void(onnx_pb::Node&)>& set = {},
                          std::int64_t opset = 25) {
    OneNode n(op, given, 1, opset);
    if (set) set(*n.node);
    return n.refusal();
  };
  const Array complex = reals({1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
              real = reals({1, 4, 1}, {1, 2, 3, 4});
  const auto onesided = [](onnx_pb::Node& n) { set_int(n, "onesided", 1); };
  expect_contains(refusal("DFT", {{"x", complex}}, onesided),
                  "'onesided' is 1 and the input is f32[1,4,2], expected a last axis of size 1");
  expect_contains(refusal("DFT", {{"x", real}},
                          [&](onnx_pb::Node& n) {
                            onesided(n);
                            set_int(n, "inverse", 1);
                          }),
                  "expected a last axis of size 2 (complex) for the inverse");
  expect_contains(refusal("ConvTranspose", {{"x", counting({1, 1, 4})}, {"w", counting({1, 1, 3})}},
                          [](onnx_pb::Node& n) { set_ints(n, "output_padding", {-1}); }),
                  "'output_padding' contains -1");
  expect_contains(refusal("QuantizeLinear", {{"x", counting({4})}, {"s", reals({}, {1})}},
                          [](onnx_pb::Node& n) { set_int(n, "output_dtype", 10); }),
                  "the dtype of the result is f16");
  expect_contains(
      refusal("NegativeLogLikelihoodLoss",
              {{"x", counting({3, 4})}, {"t", whole(DType::i64, {0, 1, 3})}, {"w", counting({5})}}),
      "weights are f32[5], expected one for each of the 4 classes");
  const auto pooled = [&](const std::vector<float>& region,
                          const std::vector<std::int64_t>& shape) {
    return refusal("MaxRoiPool", {{"x", counting({1, 1, 4, 4})}, {"r", reals({1, 5}, region)}},
                   [&](onnx_pb::Node& n) { set_ints(n, "pooled_shape", shape); });
  };
  expect_contains(pooled({0, 0, 0, 1, 1}, {2, 2}), "ran without");
  expect_contains(pooled({1, 0, 0, 1, 1}, {2, 2}), "image of a region");
  expect_contains(pooled({0, 0, 0, 1, 1}, {2}), "'pooled_shape' must be two numbers");
  expect_contains(pooled({0, 0, 0, 1, 1}, {0, 2}), "'pooled_shape' must be two numbers");
  const auto equation = [](const std::string& text) {
    return [=](onnx_pb::Node& n) { set_text(n, "equation", text); };
  };
  const Array row = counting({2}), matrix = counting({2, 2}), stack = counting({2, 2, 2});
  expect_contains(refusal("Einsum", {{"x", matrix}, {"y", stack}}, equation("...ij,...jk->...ik")),
                  "'...' covers 1 axes of input 1 and 0 of an earlier one");
  expect_contains(refusal("Einsum", {{"x", row}, {"y", matrix}}, equation("i,...i->...")),
                  "ran without");
}

TEST(Inference, FlexAttentionNeedsOneDtypeAndAsManyValuesAsKeys) {
  const auto failure = [](DType keys, const std::string& heads) {
    ModelBuilder b;
    b.model.add_opset_import()->set_domain("ai.onnx.preview");
    b.model.mutable_opset_import(1)->set_version(1);
    b.input("q", DType::f32, {"2", "8", "16", "4"});
    b.input("k", keys, {"2", "8", "32", "4"});
    b.input("v", DType::f32, {"2", heads, "32", "4"});
    b.node("FlexAttention", {"q", "k", "v"}, {"y"}).set_domain("ai.onnx.preview");
    b.output("y");
    return b.failure();
  };
  expect_contains(failure(DType::f16, "8"), "f32, f16 and f32, expected one dtype");
  expect_contains(failure(DType::f32, "4"), "keys have 8 heads and the values 4");
  expect_contains(failure(DType::f32, "8"), "imported without an error");
}

TEST(Inference, AnInitializerIsWhatTheInputOfItsNameSays) {
  const auto failure = [](const std::vector<std::string>& sizes, DType dtype = DType::f32) {
    ModelBuilder b;
    b.constant("x", counting({8, 7}));
    b.input("x", dtype, sizes);
    b.node("Neg", {"x"}, {"y"});
    b.output("y");
    return b.failure();
  };
  expect_contains(failure({"4", "7"}),
                  "initializer 'x' is f32[8,7], but the input of this name is declared f32[4,7]");
  expect_contains(failure({"8", "7", "1"}), "the input of this name is declared f32[8,7,1]");
  expect_contains(failure({"8", "7"}, DType::f16), "the input of this name is declared f16[8,7]");
  expect_contains(failure({"n", ""}), "imported without an error");
}

// ==== inputs of functions that a call omits

ModelBuilder clip_by_function(const std::vector<std::string>& operands) {
  ModelBuilder b;
  b.input("x", DType::f32, {"4"});
  b.constant("limit", reals({}, {1}));
  b.model.add_opset_import()->set_domain("own");
  onnx_pb::Function* f = b.model.add_functions();
  f->set_name("Limit");
  f->set_domain("own");
  f->add_opset_import()->set_version(18);
  for (const char* name : {"v", "low", "high"}) f->add_input(name);
  f->add_output("w");
  onnx_pb::Node* n = f->add_node();
  n->set_op_type("Clip");
  for (const char* name : {"v", "low", "high"}) n->add_input(name);
  n->add_output("w");
  b.node("Limit", operands, {"y"}).set_domain("own");
  b.output("y");
  return b;
}

TEST(LocalFunctions, InputsMayBeLeftOut) {
  const std::vector<Array> x = {reals({4}, {-3, 0, 1, 3})};
  EXPECT_EQ(clip_by_function({"x"}).run(x)[0], x[0]);
  EXPECT_EQ(clip_by_function({"x", "", ""}).run(x)[0], x[0]);
  EXPECT_EQ(clip_by_function({"x", "limit"}).run(x)[0], reals({4}, {1, 1, 1, 3}));
  EXPECT_EQ(clip_by_function({"x", "", "limit"}).run(x)[0], reals({4}, {-3, 0, 1, 1}));
}

// ==== opset 28

TEST(Opset28, SwiGluIsSwishTimesTheOther) {
  OneNode n("SwiGLU", {{"a", reals({3}, {-1, 0, 2})}, {"b", reals({3}, {2, 3, 4})}}, 1, 28);
  set_real(*n.node, "alpha", 2);
  const Array y = n.run()[0];
  for (int i : {0, 1, 2}) {
    const double a = n.values[0].real(i), b = n.values[1].real(i);
    EXPECT_NEAR(y.real(i), a / (1 + std::exp(-2 * a)) * b, 1e-6);
  }
}

TEST(Opset28, ShiftsOfSignedNumbers) {
  const auto shifted = [](const std::string& way) {
    OneNode n("BitShift",
              {{"x", whole(DType::i8, {-128, -5, 5, 5, -5, 127})},
               {"y", whole(DType::i8, {1, 1, 1, -1, 8, 9})}},
              1, 28);
    set_text(*n.node, "direction", way);
    return n.run()[0];
  };
  EXPECT_EQ(shifted("RIGHT"), whole(DType::i8, {-64, -3, 2, 0, -1, 0}));
  EXPECT_EQ(shifted("LEFT"), whole(DType::i8, {0, -10, 10, 0, 0, 0}));
}

TEST(DTypes, ThatAnOperatorDoesNotAllowAreRefused) {
  struct Case {
    const char* op;
    DType dtype;
    int operands;
    const char* expected;
  };
  for (const Case& c :
       {Case{"BitShift", DType::i32, 2, "unsigned integers"},
        Case{"BitwiseNot", DType::b1, 1, "integers"}, Case{"And", DType::i64, 2, "bools"},
        Case{"HardSigmoid", DType::i32, 1, "f16, bf16, f32 or f64"}}) {
    ModelBuilder b(18);
    b.input("x", c.dtype, {"4"});
    b.input("z", c.dtype, {"4"});
    onnx_pb::Node& n = b.node(
        c.op, c.operands == 1 ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "z"},
        {"y"});
    if (std::string(c.op) == "BitShift") set_text(n, "direction", "RIGHT");
    b.output("y");
    EXPECT_NE(b.failure().find(cat("expected ", c.expected)), std::string::npos) << b.failure();
  }
}

TEST(Opset28, ModOfFloatsHasTheSignOfTheDivisor) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Array x = reals({7}, {5, -5, 6, -6, 0, 2, -2}),
              y = reals({7}, {-3, 3, -3, 3, -1, infinity, infinity});
  const Array r = OneNode("Mod", {{"x", x}, {"y", y}}, 1, 28).run()[0];
  EXPECT_EQ(numbers_of(r), (std::vector<double>{-1, 1, 0, 0, 0, 2, infinity}));
  for (int i : {2, 4}) EXPECT_TRUE(std::signbit(r.real(i))) << i;
  EXPECT_FALSE(std::signbit(r.real(3)));
  const Array nowhere =
      OneNode("Mod", {{"x", reals({2}, {infinity, 1})}, {"y", reals({2}, {2, 0})}}, 1, 28).run()[0];
  EXPECT_TRUE(std::isnan(nowhere.real(0)) && std::isnan(nowhere.real(1)));
}

TEST(Opset28, SpaceToDepthInBothOrders) {
  const auto moved = [](const std::string& op, const Array& x, const std::string& mode) {
    OneNode n(op, {{"x", x}}, 1, 28);
    set_int(*n.node, "blocksize", 2);
    if (!mode.empty()) set_text(*n.node, "mode", mode);
    return n.run()[0];
  };
  const Array x = counting({1, 2, 4, 2});
  EXPECT_EQ(moved("SpaceToDepth", x, "DCR"), moved("SpaceToDepth", x, ""));
  EXPECT_NE(moved("SpaceToDepth", x, "DCR"), moved("SpaceToDepth", x, "CRD"));
  for (const char* mode : {"DCR", "CRD"})
    EXPECT_EQ(moved("DepthToSpace", moved("SpaceToDepth", x, mode), mode), x) << mode;
}

// In f16, 2049 would round to 2048.
TEST(Opset27, RangesOfNarrowFloatsAreCountedInF32) {
  const auto one = [](double v) {
    Array a = Array::zeros(DType::f16, {});
    a.set_real(0, v);
    return a;
  };
  for (const bool is_constant : {true, false}) {
    OneNode n(
        "Range",
        {{"a", one(0.5), is_constant}, {"b", one(4096), is_constant}, {"c", one(1), is_constant}},
        1, 27);
    const Array y = n.run()[0];
    ASSERT_EQ(y.count(), 4096);
    EXPECT_EQ(y.dtype(), DType::f16);
    EXPECT_EQ(y.real(2049), 2050) << is_constant;  // 2049.5 lies between 2048 and 2050
    EXPECT_EQ(y.real(3), 3.5);
  }
}

}  // namespace
}  // namespace hone
