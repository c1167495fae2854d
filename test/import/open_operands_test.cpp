// Axes of pads and transforms, and sizes of windows, grids and images, give by data what they give
// when they are constant.
#include "by_data.h"

namespace hone {
namespace {

Set in_mode(const char* mode) {
  return [=](onnx_pb::Node& n) { set_text(n, "mode", mode); };
}
Given int32(const Integers& list) {
  Array a = Array::zeros(DType::i32, {std::ssize(list)});
  for (std::int64_t i = 0; i < a.count(); ++i)
    a.set_real(i, static_cast<double>(list[static_cast<std::size_t>(i)]));
  return {"i", a};
}

TEST(OpenOperands, AxesOfPadsByData) {
  const Given x = {"x", counting({2, 3, 4})};
  const std::vector<std::pair<Integers, Integers>> cases = {
      {{1}, {1, 2}},  {{-1}, {0, 3}},          {{2, 0}, {1, 0, 2, 1}},
      {{-3}, {0, 0}}, {{1, 0}, {-1, 0, 1, 0}}, {{0, 2, -2}, {1, 2, 0, 0, 1, 2}},
      {{}, {}},       {{1}, {-1, -2}}};
  for (const auto& [axes, pads] : cases) {
    const Given none = {"", {}}, p = data("p", pads), a = data("a", axes);
    for (const char* mode : {"constant", "edge", "wrap"}) {
      expect_alike("Pad", {x, constant(p), none, a}, 1, in_mode(mode));
      expect_alike("Pad", {x, p, none, a}, 1, in_mode(mode));
      expect_alike("Pad", {x, p, none, constant(a)}, 1, in_mode(mode));
    }
  }
  const Given inside = data("p", {1, 2, 0, 1}), number = {"v", Array::scalar(7, DType::f32)};
  for (const Integers& axes : {Integers{1, 2}, {2, 1}, {-1, -2}}) {
    expect_alike("Pad", {x, constant(inside), {"", {}}, data("a", axes)}, 1, in_mode("reflect"));
    expect_alike("Pad", {x, inside, number, data("a", axes)});
    expect_alike("Pad", {x, inside, number, int32(axes)});
  }
  for (const Integers& dims : {Integers{1, 1}, {0, 1}, {1}})
    expect_alike("Pad", {{"x", counting(dims)}, data("p", {2, 1}), {"", {}}, data("a", {-1})});
}

// A run says how many axes are padded.
TEST(OpenOperands, AnOpenNumberOfAxesOfPads) {
  ModelBuilder b;
  b.input("x", DType::f32, {"2", "3"});
  b.input("p", DType::i64, {"n"});
  b.input("a", DType::i64, {"k"});
  b.node("Pad", {"x", "p", "", "a"}, {"y"});
  b.output("y");
  const Imported open = b.import({.dims = {{"k", {0, 4}}, {"n", {0, 8}}}});
  const auto padded = [&](const Integers& pads, const Integers& axes) {
    const std::vector<Array> inputs = {counting({2, 3}), Array::from_ints(pads),
                                       Array::from_ints(axes)};
    return evaluate(open.variants.at(0).function, inputs)[0];
  };
  EXPECT_EQ(padded({}, {}), counting({2, 3}));
  EXPECT_EQ(padded({0, -1}, {0}), reals({1, 3}, {0, 1, 2}));
  EXPECT_EQ(padded({1, -1, 0, -1}, {-1, 0}), reals({0, 4}, {}));
  EXPECT_EQ(padded({-2, 0, 1, -1}, {1, 0}), reals({1, 2}, {2, 0}));
  EXPECT_THROW(padded({0, 1, 2}, {0}), UserError);
  EXPECT_THROW(padded({0, 1}, {0, 1}), UserError);
}

TEST(OpenOperands, AxesOfPadsAreChecked) {
  const auto refusal = [](const Integers& pads, const Integers& axes) {
    return OneNode("Pad",
                   {{"x", counting({2, 3})}, constant(data("p", pads)), {"", {}}, data("a", axes)})
        .refusal();
  };
  expect_contains(refusal({1, 1}, {2}), "an axis is 2, expected -2 to 1");
  expect_contains(refusal({1, 1}, {-3}), "an axis is -3, expected -2 to 1");
  expect_contains(refusal({1, 1, 1, 1}, {1, -1}),
                  "how often one axis is named is 2, expected 0 to 1");
  expect_contains(refusal({1, 1, 1}, {1}), "'pads' has 3 elements, expected 2, two for each axis");
  expect_contains(refusal({-2, -1}, {0}), "expected 0 to");
}

Set transforming(std::int64_t inverse, std::int64_t onesided) {
  return [=](onnx_pb::Node& n) {
    set_int(n, "inverse", inverse);
    set_int(n, "onesided", onesided);
  };
}

TEST(OpenOperands, AxesOfTransformsByData) {
  for (const Integers& sizes : {Integers{2, 5, 4}, {3, 1, 6}, {1, 1, 2}, {0, 4, 3}})
    for (std::int64_t axis : {0, 1, 2, -2, -3, -4})
      for (std::int64_t parts : {1, 2}) {
        Integers dims = sizes;
        dims.push_back(parts);
        const Given x = {"x", counting(dims)}, at = scalar_data("a", axis);
        if (dims[static_cast<std::size_t>(axis < 0 ? axis + 4 : axis)] == 0) continue;
        for (std::int64_t inverse : {0, 1})
          expect_alike("DFT", {x, {"", {}}, at}, 1, transforming(inverse, 0));
        expect_alike("DFT", {x, constant(scalar_data("n", 3)), at}, 1, transforming(0, 0));
        if (parts == 1) expect_alike("DFT", {x, {"", {}}, at}, 1, transforming(0, 1));
        if (parts == 2)
          expect_alike("DFT", {x, constant(scalar_data("n", 7)), at}, 1, transforming(1, 1));
      }
  const Given row = {"x", counting({4, 2})};
  for (std::int64_t axis : {0, -2})
    expect_alike("DFT", {row, {"", {}}, data("a", {axis})}, 1, transforming(0, 0));
}

TEST(OpenOperands, AxesOfTransformsAreChecked) {
  const auto refusal = [](const Integers& dims, std::int64_t axis) {
    OneNode node("DFT", {{"x", counting(dims)}, {"", {}}, scalar_data("a", axis)});
    return node.refusal();
  };
  expect_contains(refusal({2, 3, 2}, 3), "an axis is 3, expected -3 to 2");
  expect_contains(refusal({2, 3, 2}, -4), "an axis is -4, expected -3 to 2");
  const std::string last = "the axis of a transform, counted from the front, is 2, expected 0 to 1";
  expect_contains(refusal({2, 3, 2}, 2), last);
  expect_contains(refusal({2, 3, 2}, -1), last);
  expect_contains(refusal({2, 3, 3}, 0), "expected a last axis of size 1 (real) or 2 (complex)");
  expect_contains(refusal({1, 1, 1, 1, 1, 1, 2}, 0), "depends on data");
  expect_contains(refusal({2, 0, 2}, 1),
                  "the choice of input 2 (value 'a') (-1: the length of the transform is 0, "
                  "expected at least 1) is -1");
  OneNode two("DFT", {{"x", counting({2, 3, 2})}, {"", {}}, data("a", {0, 1})});
  expect_contains(two.refusal(), "input 2 ('axis') is i64[2], expected one element");
}

// A transform of a known length may be computed in another way.
void expect_near(const std::string& op, const std::vector<Given>& given, const Set& set) {
  std::vector<Given> known = given;
  for (std::size_t i = 1; i < known.size(); ++i) known[i].is_constant = true;
  OneNode open(op, given), closed(op, known);
  for (OneNode* n : {&open, &closed}) set(*n->node);
  const Array a = open.run()[0], b = closed.run()[0];
  ASSERT_EQ(a.dims(), b.dims());
  for (std::int64_t i = 0; i < a.count(); ++i)
    EXPECT_NEAR(a.real(i), b.real(i), 1e-4) << op << " element " << i;
}

TEST(OpenOperands, LengthsOfTransformsByData) {
  for (std::int64_t n : {1, 2, 3, 5, 8})
    for (std::int64_t parts : {1, 2}) {
      const Given x = {"x", counting({2, 5, parts})}, length = scalar_data("n", n);
      for (std::int64_t inverse : {0, 1}) expect_near("DFT", {x, length}, transforming(inverse, 0));
      expect_near("DFT", {x, length}, transforming(parts == 2, 1));
      expect_near("DFT", {x, length, scalar_data("a", 0)}, transforming(0, 0));
    }
  const auto refusal = [](std::int64_t n) {
    return OneNode("DFT", {{"x", counting({1, 4, 1})}, scalar_data("n", n)}).refusal();
  };
  expect_contains(refusal(0), "the length of the transform is DFT_0.n, expected 1 or more");
  expect_contains(refusal(-1), "is -1 for these inputs, expected 0 to 4096");
  expect_contains(refusal(4097), "is 4097 for these inputs, expected 0 to 4096");
}

TEST(OpenOperands, FramesByData) {
  const Given window = {"w", reals({4}, {1, 0.5f, 2, 1}), true};
  for (std::int64_t parts : {1, 2})
    for (std::int64_t step : {1, 2, 3, 7, 100}) {
      const Given x = {"x", counting({2, 9, parts})}, by = scalar_data("s", step);
      const Set set = [&](onnx_pb::Node& n) { set_int(n, "onesided", parts == 1); };
      expect_near("STFT", {x, by, window}, set);
      for (std::int64_t n : {1, 2, 4, 9}) {
        expect_near("STFT", {x, by, {"", {}}, scalar_data("n", n)}, set);
        expect_near("STFT", {x, constant(by), window, scalar_data("n", n)}, set);
      }
    }
  const auto refusal = [](std::int64_t step, std::int64_t n) {
    return OneNode(
               "STFT",
               {{"x", counting({1, 9, 1})}, scalar_data("s", step), {"", {}}, scalar_data("n", n)})
        .refusal();
  };
  expect_contains(refusal(0, 2), "frame_step is STFT_0.n, expected 1 or more");
  expect_contains(refusal(1, 0), "frame_length is STFT_0.n_2, expected 1 or more");
  expect_contains(refusal(1, 10), "is 10 for these inputs, expected 0 to 9");
}

TEST(OpenOperands, SizesOfWindowsByData) {
  for (const char* op : {"HannWindow", "HammingWindow", "BlackmanWindow"})
    for (std::int64_t periodic : {0, 1}) {
      const auto window = [&](const Given& size, std::int64_t dtype) {
        OneNode node(op, {size});
        set_int(*node.node, "periodic", periodic);
        set_int(*node.node, "output_datatype", dtype);
        return node;
      };
      for (std::int64_t n : {0, 1, 2, 3, 16, 65536})
        for (std::int64_t dtype : {1, 10, 11}) {
          const Given size = scalar_data("n", n);
          EXPECT_EQ(window(size, dtype).run()[0], window(constant(size), dtype).run()[0]) << n;
        }
      EXPECT_EQ(window(scalar_data("n", 1), 1).run()[0].dims(), Integers{1});
      EXPECT_EQ(window(data("n", {4}), 1).run()[0].dims(), Integers{4});
      expect_contains(window(scalar_data("n", -1), 1).refusal(),
                      "is -1 for these inputs, expected 0 to 65536");
      expect_contains(window(scalar_data("n", 65537), 1).refusal(),
                      "is 65537 for these inputs, expected 0 to 65536");
      expect_contains(window(data("n", {3, 4}), 1).refusal(), "has 2 elements, expected one");
    }
}

TEST(OpenOperands, SizesOfGridsByData) {
  for (std::int64_t corners : {0, 1}) {
    const Set set = with("align_corners", corners);
    for (const Integers& size :
         {Integers{2, 3, 5, 6}, {2, 3, 1, 4}, {2, 1, 1, 1}, {2, 3, 0, 2}, {2, 0, 3, 0}})
      expect_alike("AffineGrid", {{"t", counting({2, 2, 3})}, data("s", size)}, 1, set);
    for (const Integers& size : {Integers{2, 3, 4, 5, 6}, {2, 3, 1, 1, 1}, {2, 3, 2, 0, 1}})
      expect_alike("AffineGrid", {{"t", counting({2, 3, 4})}, data("s", size)}, 1, set);
  }
  const auto refusal = [](const Integers& size) {
    return OneNode("AffineGrid", {{"t", counting({1, 2, 3})}, data("s", size)}).refusal();
  };
  expect_contains(refusal({1, 1, -1, 2}), "is -1 for these inputs, expected 0 to 4096");
  expect_contains(refusal({1, 1, 2, 4097}), "is 4097 for these inputs, expected 0 to 4096");
  expect_contains(refusal({1, 1, 2}), "has 3 elements, expected 4 or 5");
}

Set windowed(const Integers& strides, const Integers& dilations, const Integers& pads) {
  return [=](onnx_pb::Node& n) {
    set_ints(n, "strides", strides);
    set_ints(n, "dilations", dilations);
    set_ints(n, "pads", pads);
  };
}

TEST(OpenOperands, SizesOfImagesOfColumnsByData) {
  const Set plain = [](onnx_pb::Node&) {};
  const auto expect_same = [](const Integers& x, const Integers& image, const Integers& block,
                              const Set& set) {
    const Given in = {"x", counting(x)}, i = data("i", image), b = data("b", block);
    expect_alike("Col2Im", {in, i, b}, 1, set);
    expect_alike("Col2Im", {in, constant(i), b}, 1, set);
    expect_alike("Col2Im", {in, i, constant(b)}, 1, set);
  };
  expect_same({1, 5, 5}, {5, 5}, {1, 5}, plain);
  expect_same({2, 8, 6}, {3, 4}, {2, 2}, plain);
  expect_same({2, 8, 6}, {6, 1}, {1, 1}, plain);
  expect_same({1, 3, 1}, {1}, {1}, plain);
  expect_same({1, 3, 1}, {3}, {3}, plain);
  expect_same({1, 6, 0}, {0, 4}, {1, 2}, plain);
  expect_same({1, 6, 0}, {2, 4}, {3, 2}, plain);
  expect_same({1, 10, 12}, {3, 4, 5}, {1, 1, 5}, plain);
  expect_same({2, 4, 16}, {6, 6}, {2, 2}, windowed({1, 1}, {2, 2}, {0, 0, 0, 0}));
  expect_same({1, 6, 15}, {5, 6}, {2, 3}, windowed({2, 1}, {1, 1}, {0, 1, 1, 0}));
}

TEST(OpenOperands, SizesOfImagesOfColumnsAreChecked) {
  const auto refusal = [](const Integers& x, const Integers& image, const Integers& block) {
    return OneNode("Col2Im", {{"x", counting(x)}, data("i", image), data("b", block)}).refusal();
  };
  expect_contains(refusal({1, 4, 4}, {3, 3}, {2, 0}),
                  "a size in 'block_shape' is Col2Im_0.n_2, expected 1 or more");
  expect_contains(refusal({1, 4, 4}, {3, 3}, {5, 1}),
                  "size Col2Im_0.n is 5 for these inputs, expected 0 to 4");
  expect_contains(refusal({1, 4, 4}, {3, -1}, {2, 2}), "is -1 for these inputs, expected 0 to 6");
  expect_contains(refusal({1, 4, 4}, {3, 9}, {2, 2}), "is 9 for these inputs, expected 0 to 6");
  expect_contains(refusal({1, 4, 4}, {3, 4}, {2, 2}), "blocks, expected");
  expect_contains(refusal({1, 4, 2}, {3, 2}, {3, 1}), "channels, expected");
  expect_contains(refusal({1, 4, 4}, {3, 3}, {2}), "expected two lists of one length");
  const Given x = {"x", counting({1, 4, 4})}, block = constant(data("b", {2, 0}));
  expect_contains(OneNode("Col2Im", {x, constant(data("i", {3, 3})), block}).refusal(),
                  "a size in 'block_shape' is 0, expected 1 or more");
}

TEST(OpenOperands, SizesOfUnpooledImagesByData) {
  const auto index = [](const Integers& dims) {
    Array a = Array::zeros(DType::i64, dims);
    for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, static_cast<double>(3 * i + 1));
    return Given{"i", a};
  };
  const Given x = {"x", counting({1, 2, 2, 2})}, at = index({1, 2, 2, 2});
  const auto unpooled = [&](const Given& shape) {
    OneNode node("MaxUnpool", {x, at, shape});
    set_ints(*node.node, "kernel_shape", {2, 2});
    set_ints(*node.node, "strides", {2, 2});
    return node;
  };
  for (const Integers& to : {Integers{1, 2, 4, 4}, {1, 2, 5, 7}, {1, 2, 4, 9}, {1, 2, 1, 0}})
    EXPECT_EQ(unpooled(data("s", to)).run()[0], unpooled(constant(data("s", to))).run()[0]);
  const std::string first = "images or channels in 'output_shape' is";
  expect_contains(unpooled(data("s", {2, 2, 4, 4})).refusal(), first + " 2, expected 1 to 1");
  expect_contains(unpooled(data("s", {1, 1, 4, 4})).refusal(), first + " 1, expected 2 to 2");
  expect_contains(unpooled(data("s", {1, 2, 4, -1})).refusal(), "is -1 for these inputs");
  expect_contains(unpooled(data("s", {1, 2, 4})).refusal(), "has 3 elements, expected 4 sizes");
}

}  // namespace
}  // namespace hone
