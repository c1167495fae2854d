// Operands given by data give the same results as constants: axes of pads, slices and transforms,
// sizes of windows, grids and images, scales and other numbers.
#include <cmath>

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
  for (const Integers& dims : {Integers{2, 0}, {0, 3}, {0, 0}})
    expect_alike("Pad", {{"x", counting(dims)}, data("p", {1, 0, 1, 2}), number});
}

// The number of padded axes is known only in a run.
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

// A transform of a known length may be computed in another way, so the results may differ slightly.
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

TEST(OpenOperands, AxesOfSlicesByData) {
  const Given x = {"x", counting({3, 4, 5})};
  const auto sliced = [&](const Integers& starts, const Integers& ends, const Integers& axes,
                          const Integers& steps) {
    std::vector<Given> given = {x, data("s", starts), data("e", ends), data("a", axes)};
    if (!steps.empty()) given.push_back(data("b", steps));
    expect_alike("Slice", given);
    for (const std::size_t known : {1U, 2U, 4U})
      if (known < given.size()) given[known] = constant(given[known]);
    expect_alike("Slice", given);
    return OneNode("Slice", given).run()[0];
  };
  EXPECT_EQ(sliced({1}, {3}, {2}, {}).dims(), (Integers{3, 4, 2}));
  EXPECT_EQ(sliced({1, 0}, {3, 2}, {-1, 0}, {}).dims(), (Integers{2, 4, 2}));
  EXPECT_EQ(sliced({1, 2}, {9, 3}, {0, 1}, {1, 1}).dims(), (Integers{2, 1, 5}));
  EXPECT_EQ(sliced({-1, 0}, {-9, 4}, {1, 2}, {-2, 3}).dims(), (Integers{3, 2, 2}));
  EXPECT_EQ(sliced({}, {}, {}, {}), counting({3, 4, 5}));
  EXPECT_EQ(sliced({2}, {2}, {0}, {}).dims(), (Integers{0, 4, 5}));
  expect_alike("Slice", {{"x", counting({6})}, data("s", {2}), data("e", {5}), data("a", {0})});
  const Array y = OneNode("Slice", {{"x", counting({2, 3})},
                                    data("s", {2, 1}),
                                    data("e", {-9, 2}),
                                    data("a", {1, 0}),
                                    data("b", {-1, 1})})
                      .run()[0];
  EXPECT_EQ(y, reals({1, 3}, {5, 4, 3}));
}

// The number of axes with bounds is known only in a run; they are the first axes or the named ones.
TEST(OpenOperands, AnOpenNumberOfAxesOfSlices) {
  for (const bool are_named : {false, true}) {
    ModelBuilder b;
    b.input("x", DType::f32, {"2", "3"});
    for (const char* name : {"s", "e", "a"})
      if (name[0] != 'a' || are_named) b.input(name, DType::i64, {"n"});
    b.node("Slice",
           are_named ? std::vector<std::string>{"x", "s", "e", "a"}
                     : std::vector<std::string>{"x", "s", "e"},
           {"y"});
    b.output("y");
    const Imported open = b.import({.dims = {{"n", {0, 3}}}});
    const auto sliced = [&](const Integers& starts, const Integers& ends, const Integers& axes) {
      std::vector<Array> inputs = {counting({2, 3}), Array::from_ints(starts),
                                   Array::from_ints(ends)};
      if (are_named) inputs.push_back(Array::from_ints(axes));
      return evaluate(variant_for(open, inputs)->function, inputs)[0];
    };
    EXPECT_EQ(sliced({}, {}, {}), counting({2, 3}));
    EXPECT_EQ(sliced({1}, {2}, {0}), reals({1, 3}, {3, 4, 5}));
    EXPECT_EQ(sliced({1, 0}, {2, 2}, {0, 1}), reals({1, 2}, {3, 4}));
    if (are_named) {
      EXPECT_EQ(sliced({1, 0}, {2, 1}, {-1, 0}), reals({1, 1}, {1}));
    }
    EXPECT_THROW(sliced({0, 0, 0}, {1, 1, 1}, {0, 1, 0}), UserError);
  }
}

TEST(OpenOperands, AxesOfSlicesAreChecked) {
  const auto refusal = [](const Integers& starts, const Integers& ends, const Integers& axes) {
    return OneNode("Slice",
                   {{"x", counting({2, 3})}, data("s", starts), data("e", ends), data("a", axes)})
        .refusal();
  };
  expect_contains(refusal({0}, {1}, {2}), "an axis is 2, expected -2 to 1");
  expect_contains(refusal({0, 0}, {1, 1}, {1, -1}),
                  "how often one axis is named is 2, expected 0 to 1");
  expect_contains(refusal({0, 0}, {1, 1}, {1}),
                  "(value 's') has 2 elements for 1 axes, expected equal numbers");
}

// In inference every element is kept; in training the same elements are dropped as with constants.
TEST(OpenOperands, DropoutMayTrainByData) {
  const Given x = {"x", reals({2, 3}, {1, -2, 3, INFINITY, 0, 6})};
  const Given ratio = {"r", Array::scalar(0.5, DType::f32)};
  const auto mode = [](bool trains) {
    return Given{"t", Array::scalar_int(trains, DType::b1), false};
  };
  const Set seeded = with("seed", 7);
  for (const bool is_constant : {false, true}) {
    Given r = ratio;
    r.is_constant = is_constant;
    OneNode still("Dropout", {x, r, mode(false)}, 2);
    EXPECT_EQ(still.run()[0], x.value);
    EXPECT_EQ(numbers_of(still.run()[1]), std::vector<double>(6, 1));
    OneNode open("Dropout", {x, r, mode(true)}, 2),
        known("Dropout", {x, r, constant(mode(true))}, 2);
    for (OneNode* n : {&open, &known}) seeded(*n->node);
    const std::vector<Array> y = open.run();
    EXPECT_EQ(y[0], known.run()[0]);
    EXPECT_EQ(y[1], known.run()[1]);
    for (std::int64_t i = 0; i < 6; ++i)
      EXPECT_EQ(y[0].real(i), y[1].integer(i) ? 2 * x.value.real(i) : 0) << i;
  }
}

TEST(OpenOperands, ScalesOfUpsampleByData) {
  const Given x = {"x", counting({1, 1, 2, 3})};
  for (const std::int64_t opset : {9, 10})
    for (const char* mode : {"nearest", "linear"})
      for (const std::vector<float>& scales :
           {std::vector<float>{1, 1, 2, 3}, {1, 1, 1, 1}, {1, 2, 1.5f, 2}, {1, 1, 3, 1}}) {
        const Given by = {"s", reals({4}, scales)};
        const char* op = opset == 9 ? "Upsample" : "Resize";
        OneNode open(op, {x, by}, 1, opset), known(op, {x, constant(by)}, 1, opset);
        for (OneNode* n : {&open, &known}) set_text(*n->node, "mode", mode);
        EXPECT_EQ(open.run()[0], known.run()[0]) << op << " " << mode << " " << scales[2];
      }
  // An axis may become 64 elements long, or four times as long, or as long as the options state.
  ModelBuilder large;
  large.input("x", DType::f32, {"1", "20"});
  large.input("s", DType::f32, {"2"});
  large.node("Resize", {"x", "", "s"}, {"y"});
  large.output("y");
  const std::vector<Array> inputs = {counting({1, 20}), reals({2}, {1, 5})};
  expect_contains(
      [&] {
        try {
          large.run(inputs);
        } catch (const UserError& e) {
          return std::string(e.what());
        }
        return std::string();
      }(),
      "size Resize_0.n_2 is 100 for these inputs, expected 0 to 80");
  const Imported stated = large.import({.dims = {{"Resize_0.n_2", {0, 100}}}});
  const Array y = evaluate(stated.variants.at(0).function, inputs)[0];
  EXPECT_EQ(y.dims(), (Integers{1, 100}));
  EXPECT_EQ(y.real(99), 19);
  OneNode twice("Upsample", {x, {"s", reals({4}, {1, 1, 1, 2})}}, 1, 9);
  EXPECT_EQ(twice.run()[0], reals({1, 1, 2, 6}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
}

TEST(OpenOperands, NumbersOfMelWeightsByData) {
  const auto weights = [](bool is_constant, std::int64_t mels, std::int64_t length,
                          std::int64_t rate, float low, float high) {
    std::vector<Given> given = {scalar_data("m", mels),
                                scalar_data("n", length),
                                scalar_data("r", rate),
                                {"l", Array::scalar(low, DType::f32)},
                                {"h", Array::scalar(high, DType::f32)}};
    for (Given& g : given) g.is_constant = is_constant;
    return OneNode("MelWeightMatrix", given).run()[0];
  };
  const auto expect_near_to = [](const Array& got, const Array& wanted) {
    ASSERT_EQ(got.dims(), wanted.dims());
    for (std::int64_t i = 0; i < got.count(); ++i)
      EXPECT_NEAR(got.real(i), wanted.real(i), 1e-6) << i;
  };
  for (const auto& [mels, length, rate, low, high] : {std::tuple{8, 16, 8192, 0.0f, 4096.0f},
                                                      {8, 16, 8192, 0.0f, 2048.0f},
                                                      {20, 512, 16000, 125.0f, 7600.0f},
                                                      {1, 9, 22050, 0.0f, 11025.0f},
                                                      {3, 0, 100, 0.0f, 50.0f}})
    expect_near_to(weights(false, mels, length, rate, low, high),
                   weights(true, mels, length, rate, low, high));
  EXPECT_EQ(weights(false, 3, 64, 16000, 0, 8000).dims(), (Integers{33, 3}));
  const auto refusal = [&](std::int64_t mels, std::int64_t rate) {
    std::vector<Given> given = {scalar_data("m", mels), constant(scalar_data("n", 16)),
                                scalar_data("r", rate),
                                constant({"l", Array::scalar(0.0, DType::f32)}),
                                constant({"h", Array::scalar(100.0, DType::f32)})};
    return OneNode("MelWeightMatrix", given).refusal();
  };
  expect_contains(refusal(0, 8000), "num_mel_bins is");
  expect_contains(refusal(2, 0), "sample_rate is");
}

// Next to a 0 any size would be valid; sizes of the operand and those that the options state are
// accepted.
TEST(OpenOperands, ShapesOfTensorsWithoutElementsByData) {
  const Set zeros = with("allowzero", 1);
  for (const Integers& to : {Integers{3, 4, 0}, {0, 3, 4}, {4, 0, 1}, {0, 0, 0}})
    expect_alike("Reshape", {{"x", counting({0, 3, 4})}, data("s", to)}, 1, zeros);
  const auto reshaped = [&](const ImportOptions& options, const Integers& to) {
    ModelBuilder b;
    b.input("x", DType::f32, {"0", "3"});
    b.input("s", DType::i64, {"2"});
    zeros(b.node("Reshape", {"x", "s"}, {"y"}));
    b.output("y");
    const std::vector<Array> inputs = {counting({0, 3}), Array::from_ints(to)};
    return evaluate(variant_for(b.import(options), inputs)->function, inputs)[0];
  };
  EXPECT_EQ(reshaped({}, {3, 0}), counting({3, 0}));
  EXPECT_THROW(reshaped({}, {7, 0}), UserError);
  EXPECT_EQ(reshaped({.dims = {{"Reshape_0.n", {0, 7}}}}, {7, 0}), counting({7, 0}));
}

// The result of a node for a list whose length only the run's inputs determine: the model has a
// variant for each length.
Array with_list(const std::string& op, const Array& x, const Integers& list, const Set& set = {}) {
  ModelBuilder b;
  std::vector<std::string> sizes;
  for (const std::int64_t d : x.dims()) sizes.push_back(cat(d));
  b.input("x", DType::f32, sizes);
  b.input("a", DType::i64, {"k"});
  onnx_pb::Node& node = b.node(op, {"x", "a"}, {"y"});
  if (set) set(node);
  b.output("y");
  const std::vector<Array> inputs = {x, Array::from_ints(list)};
  const Imported model = b.import({.dims = {{"k", {0, 4}}}});
  const ImportedVariant* variant = variant_for(model, inputs);
  if (!variant) throw UserError("no variant takes these inputs");
  return evaluate(variant->function, inputs)[0];
}

TEST(OpenOperands, AnOpenNumberOfAxesDecidesTheRank) {
  const Array x = counting({2, 3, 2});
  const Set drops = with("keepdims", 0);
  EXPECT_EQ(with_list("ReduceSum", x, {1}, drops), reals({2, 2}, {6, 9, 24, 27}));
  EXPECT_EQ(with_list("ReduceSum", x, {2, 0}, drops), reals({3}, {14, 22, 30}));
  EXPECT_EQ(with_list("ReduceSum", x, {0, -1, 1}, drops), reals({}, {66}));
  EXPECT_EQ(with_list("ReduceSum", x, {}, drops), reals({}, {66}));
  EXPECT_EQ(with_list("ReduceMax", x, {0, 1}, drops), reals({2}, {10, 11}));
  EXPECT_EQ(with_list("Squeeze", counting({1, 2, 1}), {0}), counting({2, 1}));
  EXPECT_EQ(with_list("Squeeze", counting({1, 2, 1}), {-1, 0}), counting({2}));
  EXPECT_EQ(with_list("Unsqueeze", counting({2, 3}), {1}), counting({2, 1, 3}));
  EXPECT_EQ(with_list("Unsqueeze", counting({2, 3}), {0, -1}), counting({1, 2, 3, 1}));
  EXPECT_EQ(with_list("Unsqueeze", counting({2, 3}), {}), counting({2, 3}));
  EXPECT_THROW(with_list("Squeeze", counting({1, 2, 1}), {1}), UserError);
  EXPECT_THROW(with_list("ReduceSum", x, {0, 0}, drops), UserError);
  EXPECT_THROW(with_list("ReduceSum", x, {0, 1, 2, 0}, drops), UserError);
}

TEST(OpenOperands, AnOpenNumberOfSizesDecidesTheRank) {
  const Array x = counting({2, 3});
  EXPECT_EQ(with_list("Reshape", x, {6}), counting({6}));
  EXPECT_EQ(with_list("Reshape", x, {3, -1}), counting({3, 2}));
  EXPECT_EQ(with_list("Reshape", x, {1, 0, 2, 1}), counting({1, 3, 2, 1}));
  EXPECT_EQ(with_list("Expand", reals({1}, {7}), {2, 2}), reals({2, 2}, {7, 7, 7, 7}));
  EXPECT_EQ(with_list("Expand", reals({1}, {7}), {3}), reals({3}, {7, 7, 7}));
}

// Only the axes that data names must have size 1, even if other sizes are open.
TEST(OpenOperands, SqueezedAxesOfOpenSizesByData) {
  ModelBuilder b;
  b.input("x", DType::f32, {"n", "m", "1"});
  b.input("a", DType::i64, {"1"});
  b.node("Squeeze", {"x", "a"}, {"y"});
  b.output("y");
  const auto squeezed = [&](const Integers& dims, std::int64_t axis) {
    return b.run({counting(dims), Array::from_ints(Integers{axis})})[0];
  };
  EXPECT_EQ(squeezed({4, 3, 1}, 2), counting({4, 3}));
  EXPECT_EQ(squeezed({1, 3, 1}, 0), counting({3, 1}));
  EXPECT_EQ(squeezed({4, 1, 1}, -2), counting({4, 1}));
  EXPECT_EQ(squeezed({1, 1, 1}, 1), counting({1, 1}));
  for (const std::int64_t axis : {0, 1, -3}) EXPECT_THROW(squeezed({4, 3, 1}, axis), UserError);
}

// A number of axes known only during a run cannot select a variant.
TEST(OpenOperands, ANumberOfAxesThatDataDecidesIsRefused) {
  ModelBuilder b;
  b.input("x", DType::f32, {"2", "3"});
  b.input("c", DType::i64, {"2"});
  b.node("NonZero", {"c"}, {"found"});
  b.ints("list", {-1});
  b.node("Reshape", {"found", "list"}, {"axes"});
  with("keepdims", 0)(b.node("ReduceSum", {"x", "axes"}, {"y"}));
  b.output("y");
  expect_contains(b.failure(), "is known only when the model runs");
}

}  // namespace
}  // namespace hone
