// Convolutions whose weights have open sizes give the same results as with constant weights.
#include "one_node.h"

namespace hone {
namespace {

using Integers = std::vector<std::int64_t>;
using Set = std::function<void(onnx_pb::Node&)>;

// The weights of the second convolution are inputs whose sizes are all open.
void expect_same_convolution(const Array& x, const Array& w, const Set& set,
                             const std::string& op = "Conv") {
  const std::size_t channels = op == "Conv" ? 0 : 1;
  const Array bias = counting({w.dims()[channels]});
  OneNode known(op, {{"x", x}, {"w", w, true}, {"b", bias, true}});
  set(*known.node);
  ModelBuilder b;
  std::vector<std::string> names[2];
  for (std::size_t i = 0; i < x.dims().size(); ++i) {
    names[0].push_back(cat("x", i));
    names[1].push_back(cat("w", i));
  }
  b.input("x", x.dtype(), names[0]);
  b.input("w", w.dtype(), names[1]);
  b.input("b", DType::f32, {names[1][channels]});
  set(b.node(op, {"x", "w", "b"}, {"y"}));
  b.output("y");
  const Imported open = b.import({.dims = {{"x0", {0, 8}}}});
  EXPECT_EQ(evaluate(open.variants.at(0).function, std::vector{x, w, bias})[0], known.run()[0])
      << Shape(dims_of(x.dims())) << " by " << Shape(dims_of(w.dims()));
}

TEST(OpenWeights, OfAConvolution) {
  const auto plain = [](onnx_pb::Node&) {};
  for (const Integers& w : {Integers{3, 2, 3, 2}, {1, 2, 1, 1}, {2, 2, 5, 6}, {4, 2, 1, 6}})
    expect_same_convolution(counting({2, 2, 5, 6}), counting(w), plain);
  expect_same_convolution(counting({1, 1, 1}), counting({1, 1, 1}), plain);
  expect_same_convolution(counting({0, 1, 4}), counting({2, 1, 3}), plain);
  expect_same_convolution(counting({1, 2, 3, 4, 3}), counting({2, 2, 2, 2, 3}), plain);
  expect_same_convolution(counting({2, 4, 7, 5}), counting({6, 2, 3, 2}), [](onnx_pb::Node& n) {
    set_int(n, "group", 2);
    set_ints(n, "strides", {2, 1});
    set_ints(n, "dilations", {1, 3});
    set_ints(n, "pads", {1, 0, 2, 1});
  });
  for (const char* same : {"SAME_UPPER", "SAME_LOWER", "VALID"})
    expect_same_convolution(counting({1, 1, 7, 4}), counting({2, 1, 4, 3}), [&](onnx_pb::Node& n) {
      set_text(n, "auto_pad", same);
      set_ints(n, "strides", {2, 3});
    });
}

TEST(OpenWeights, OfATransposedConvolution) {
  const auto plain = [](onnx_pb::Node&) {};
  for (const Integers& w : {Integers{2, 3, 3, 2}, {2, 1, 1, 1}, {2, 4, 1, 6}})
    expect_same_convolution(counting({2, 2, 3, 4}), counting(w), plain, "ConvTranspose");
  expect_same_convolution(counting({0, 1, 4}), counting({1, 2, 3}), plain, "ConvTranspose");
  const auto moved = [](onnx_pb::Node& n) {
    set_ints(n, "strides", {2, 3});
    set_ints(n, "dilations", {1, 2});
    set_ints(n, "pads", {1, 0, 2, 1});
    set_ints(n, "output_padding", {1, 0});
  };
  expect_same_convolution(counting({2, 2, 3, 5}), counting({2, 3, 3, 2}), moved, "ConvTranspose");
}

TEST(OpenWeights, HaveTheSizesOfTheAttribute) {
  ModelBuilder b;
  b.input("x", DType::f32, {"1", "2", "9"});
  b.input("w", DType::f32, {"3", "2", "k"});
  set_ints(b.node("Conv", {"x", "w"}, {"y"}), "kernel_shape", {4});
  b.output("y");
  const Function f = b.import().variants.at(0).function;
  EXPECT_EQ(f.result(0).type(), f32({1, 3, 6}));
  EXPECT_THROW(evaluate(f, {{counting({1, 2, 9}), counting({3, 2, 5})}}), UserError);
}

TEST(OpenWeights, AreChecked) {
  ModelBuilder b;
  b.input("x", DType::f32, {"1", "c", "l"});
  b.input("w", DType::f32, {"o", "i", "k"});
  set_int(b.node("Conv", {"x", "w"}, {"y"}), "group", 2);
  b.output("y");
  const auto refusal = [&](const Integers& x, const Integers& w) -> std::string {
    try {
      b.run({counting(x), counting(w)});
    } catch (const UserError& e) {
      return e.what();
    }
    return "ran without an error";
  };
  EXPECT_EQ(refusal({1, 4, 5}, {6, 2, 5}), "ran without an error");
  expect_contains(refusal({1, 4, 5}, {6, 3, 2}), "channels of the weights (times 2 groups)");
  expect_contains(refusal({1, 4, 5}, {3, 2, 2}), "expected a multiple of the 2 groups");
  expect_contains(refusal({1, 4, 5}, {6, 2, 6}), "the window covers");
}

}  // namespace
}  // namespace hone
