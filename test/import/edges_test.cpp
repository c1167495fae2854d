// Operators at the limits of their inputs: ties between two elements, sizes of 0, positions out of
// range, numbers at the end of their dtype.
#include <algorithm>
#include <cmath>
#include <limits>

#include "one_node.h"

namespace hone {
namespace {

using Integers = std::vector<std::int64_t>;

// ==== ties between two elements

std::int64_t floor_ratio(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && a < 0); }

// The element nearest to the middle of output i, in integer arithmetic; ties go down (or up).
std::int64_t nearest(std::int64_t i, std::int64_t in, std::int64_t out, bool up) {
  const std::int64_t twice = (2 * i + 1) * in - out;  // 2 * out times the coordinate
  const std::int64_t at =
      up ? floor_ratio(twice + out, 2 * out) : -floor_ratio(-(twice - out), 2 * out);
  return std::clamp<std::int64_t>(at, 0, in - 1);
}

TEST(Edges, ResizeTakesTheRightNeighbourOfEveryPairOfSizes) {
  for (std::int64_t in = 1; in <= 24; ++in)
    for (std::int64_t out = 1; out <= 48; ++out)
      for (bool up : {false, true})
        for (bool by_scale : {false, true}) {
          const float scale = static_cast<float>(out) / static_cast<float>(in);
          std::vector<Given> given = {{"x", counting({in})}, {"", {}}};
          if (by_scale)
            given.push_back({"s", reals({1}, {scale}), true});
          else
            given.insert(given.end(), {{"", {}}, {"n", Array::from_ints(Integers{out}), true}});
          OneNode model("Resize", given);
          if (up) set_text(*model.node, "nearest_mode", "round_prefer_ceil");
          const Array y = model.run()[0];
          ASSERT_EQ(y.dims(), Integers{out}) << in;
          for (std::int64_t i = 0; i < out; ++i)
            ASSERT_EQ(y.real(i), static_cast<double>(nearest(i, in, out, up)))
                << in << " to " << out << (up ? " up " : " down ") << i << by_scale;
        }
}

TEST(Edges, ScalesOfOpenSizesAreFractions) {
  ModelBuilder b;
  b.input("x", DType::f32, {"n"});
  b.constant("s", reals({1}, {7.0f / 6}));
  b.node("Resize", {"x", "", "s"}, {"y"});
  b.output("y");
  EXPECT_EQ(b.run({counting({6})})[0].dims(), Integers{7});
  EXPECT_EQ(b.run({counting({30})})[0].dims(), Integers{35});
}

// Keys' cubic of four elements; beyond the border, the last element is repeated.
double cubic_at(const std::vector<double>& row, double x) {
  constexpr double a = -0.75;
  const auto last = static_cast<std::int64_t>(row.size()) - 1;
  const double base = std::floor(x);
  double sum = 0;
  for (int k = -1; k <= 2; ++k) {
    const double d = std::fabs(base + k - x);
    const double w =
        d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    const auto at = std::clamp<std::int64_t>(static_cast<std::int64_t>(base) + k, 0, last);
    sum += w * row[static_cast<std::size_t>(at)];
  }
  return sum;
}

// As PyTorch writes it: empty scales next to sizes, and a region that is ignored.
TEST(Edges, ResizeTakesEmptyScalesBesideSizes) {
  for (std::int64_t opset : {11, 13}) {
    const OneNode model("Resize",
                        {{"x", counting({1, 1, 2, 2})},
                         {"roi", Array::zeros(DType::f32, {opset == 11 ? 8 : 0}), true},
                         {"scales", Array::zeros(DType::f32, {0}), true},
                         {"sizes", Array::from_ints(Integers{1, 1, 4, 2}), true}},
                        1, opset);
    EXPECT_EQ(model.run()[0], reals({1, 1, 4, 2}, {0, 1, 0, 1, 2, 3, 2, 3})) << opset;
  }
}

// A sampling ratio of 0 takes as many samples as a bin has elements.
TEST(Edges, RoiAlignChoosesItsNumberOfSamples) {
  Array image = counting({1, 1, 8, 8});
  for (std::int64_t i = 0; i < image.count(); ++i)
    image.set_real(i, static_cast<double>(i * i % 37));
  auto pooled = [&](std::int64_t ratio) {
    OneNode model("RoiAlign", {{"x", image},
                               {"rois", reals({1, 4}, {0, 0, 6, 6})},
                               {"i", Array::from_ints(Integers{0})}});
    set_int(*model.node, "output_height", 2);
    set_int(*model.node, "output_width", 2);
    set_int(*model.node, "sampling_ratio", ratio);
    return model.run()[0];
  };
  EXPECT_EQ(pooled(0), pooled(3));
  EXPECT_NE(pooled(0), pooled(1));
}

TEST(Edges, RoiAlignRefusesImagesThatAreNotThere) {
  for (const bool is_constant : {false, true})
    for (const std::int64_t ratio : {0, 2})
      for (const std::int64_t image : {0, 1, 2, -1}) {
        OneNode model("RoiAlign", {{"x", counting({2, 1, 3, 3})},
                                   {"rois", reals({1, 4}, {0, 0, 2, 2})},
                                   {"i", Array::from_ints(Integers{image}), is_constant}});
        set_int(*model.node, "sampling_ratio", ratio);
        if (image == 0 || image == 1)
          EXPECT_NO_THROW(model.run());
        else
          expect_contains(model.refusal(),
                          cat("an image of 'batch_indices' is ", image, ", expected 0 to 1"));
      }
}

// "starts[i] is clamped into the range [0, dims[axes[i]]-1] for negative stepping".
TEST(Edges, ASliceBackwardsFromBeforeTheAxisHasItsFirstElement) {
  for (const bool is_constant : {false, true})
    for (const std::int64_t start : {-5, -6, -12, 0}) {
      OneNode model("Slice", {{"x", counting({5})},
                              {"s", Array::from_ints(Integers{start}), is_constant},
                              {"e", Array::from_ints(Integers{-20}), is_constant},
                              {"a", Array::from_ints(Integers{0}), true},
                              {"t", Array::from_ints(Integers{-1}), true}});
      EXPECT_EQ(model.run()[0], reals({1}, {0})) << start;
    }
}

TEST(Edges, CubicSamplesNearTheBorderRepeatElementsNotPlaces) {
  const std::vector<float> row = {3, -1, 4, 1, -5, 9};
  std::vector<float> grid;
  constexpr int count = 41;
  for (int i = 0; i < count; ++i) grid.insert(grid.end(), {static_cast<float>(-2 + 0.1 * i), 0.0f});
  for (bool corners : {false, true}) {
    OneNode model("GridSample",
                  {{"x", reals({1, 1, 1, 6}, row)}, {"g", reals({1, 1, count, 2}, grid)}});
    set_text(*model.node, "mode", "cubic");
    set_text(*model.node, "padding_mode", "border");
    set_int(*model.node, "align_corners", corners);
    const Array y = model.run()[0];
    for (int i = 0; i < count; ++i) {
      const double g = grid[static_cast<std::size_t>(2 * i)];
      const double x = corners ? (g + 1) * 0.5 * 5 : ((g + 1) * 6 - 1) * 0.5;
      EXPECT_NEAR(y.real(i), cubic_at({row.begin(), row.end()}, x), 1e-4) << corners << " " << g;
    }
  }
}

TEST(Edges, ConstantsAreThoseOfTheSchema) {
  const Array x = Array::of<double>(DType::f64, {3}, std::vector<double>{-1, 0.25, 2});
  auto first = [&](const std::string& op, std::int64_t opset) {
    return OneNode(op, {{"x", x}}, 1, opset).run()[0].real(0);
  };
  EXPECT_EQ(first("LeakyRelu", 16), -double{0.01f});
  EXPECT_EQ(first("HardSigmoid", 6), -1 * double{0.2f} + 0.5);
  EXPECT_EQ(first("HardSwish", 22), -(-double{1.0f / 6} + 0.5));
}

// ==== sizes of 0

TEST(Edges, InfinitiesOfTheAskedForSign) {
  const float huge = std::numeric_limits<float>::infinity();
  for (const bool negative : {false, true})
    for (const bool positive : {false, true}) {
      OneNode is_inf("IsInf", {{"x", reals({4}, {-huge, huge, NAN, 1})}});
      set_int(*is_inf.node, "detect_negative", negative);
      set_int(*is_inf.node, "detect_positive", positive);
      const Array y = is_inf.run()[0];
      for (std::int64_t i = 0; i < 4; ++i)
        EXPECT_EQ(y.integer(i), (i == 0 && negative) || (i == 1 && positive)) << i;
    }
}

TEST(Edges, NothingToMultiply) {
  const Array bias = reals({4}, {1, 2, 3, 4});
  const Array y = OneNode("Conv", {{"x", counting({1, 0, 5, 5})},
                                   {"w", counting({4, 0, 3, 3}), true},
                                   {"b", bias, true}})
                      .run()[0];
  EXPECT_EQ(y.dims(), (Integers{1, 4, 3, 3}));
  for (std::int64_t i = 0; i < y.count(); ++i) EXPECT_EQ(y.real(i), bias.real(i / 9));
  const Array none =
      OneNode("Conv", {{"x", counting({1, 3, 5, 5})}, {"w", counting({0, 3, 3, 3}), true}})
          .run()[0];
  EXPECT_EQ(none.dims(), (Integers{1, 0, 3, 3}));
}

TEST(Edges, AWindowLargerThanItsInputIsRefused) {
  const OneNode conv("Conv", {{"x", counting({1, 3, 4, 4})}, {"w", counting({4, 3, 5, 5}), true}});
  expect_contains(conv.refusal(), "the window covers 5 elements, but the padded input has 4");
  ModelBuilder b;
  b.input("x", DType::f32, {"1", "1", "n"});
  b.constant("w", counting({1, 1, 3}));
  b.node("Conv", {"x", "w"}, {"y"});
  b.output("y");
  EXPECT_EQ(b.run({counting({1, 1, 3})})[0].dims(), (Integers{1, 1, 1}));
  EXPECT_THROW(b.run({counting({1, 1, 2})}), UserError);
}

// ==== positions out of range

TEST(Edges, TriangleOfAnyDiagonal) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const Array x = counting({3, 4});
  for (std::int64_t k : {most, most - 1, std::int64_t{4}, std::int64_t{1}, std::int64_t{0},
                         std::int64_t{-1}, std::int64_t{-3}, -most, -most - 1})
    for (bool upper : {true, false})
      for (bool is_constant : {true, false}) {
        OneNode model("Trilu", {{"x", x}, {"k", Array::scalar_int(k, DType::i64), is_constant}});
        set_int(*model.node, "upper", upper);
        const Array y = model.run()[0];
        for (std::int64_t i = 0; i < 12; ++i) {
          const std::int64_t ahead = i % 4 - i / 4;
          EXPECT_EQ(y.real(i), (upper ? ahead >= k : ahead <= k) ? x.real(i) : 0) << k << upper;
        }
      }
}

TEST(Edges, PlacesOutOfRangeAreRefused) {
  for (std::int64_t bad : {std::int64_t{16}, std::int64_t{-1}}) {
    const Array places = Array::of<std::int64_t>(DType::i64, {1, 1, 2, 2}, Integers{0, 5, 9, bad});
    for (bool is_constant : {false, true}) {
      OneNode model("MaxUnpool", {{"x", counting({1, 1, 2, 2})}, {"i", places, is_constant}});
      set_ints(*model.node, "kernel_shape", {2, 2});
      set_ints(*model.node, "strides", {2, 2});
      expect_contains(model.refusal(), cat(" is ", bad, ", expected "));
    }
  }
  for (std::int64_t bad : {std::int64_t{5}, std::int64_t{-1}})
    for (bool is_constant : {false, true}) {
      const OneNode model(
          "ReverseSequence",
          {{"x", counting({4, 2})}, {"l", Array::from_ints(Integers{3, bad}), is_constant}});
      expect_contains(model.refusal(), cat(" is ", bad, ", expected "));
    }
}

TEST(Edges, ARangeOfWhatIsNoNumberIsRefused) {
  const Array zero = Array::scalar(0, DType::f32), one = Array::scalar(1, DType::f32),
              nan = Array::scalar(NAN, DType::f32);
  for (bool is_constant : {false, true}) {
    EXPECT_NE(OneNode("Range", {{"a", zero}, {"b", nan, is_constant}, {"c", one}}).refusal(),
              "ran without an error");
    EXPECT_NE(OneNode("Range", {{"a", zero, is_constant}, {"b", one}, {"c", nan}}).refusal(),
              "ran without an error");
    EXPECT_NE(OneNode("Range", {{"a", zero}, {"b", one}, {"c", zero, is_constant}}).refusal(),
              "ran without an error");
  }
  EXPECT_EQ(
      OneNode("Range", {{"a", one, true}, {"b", zero, true}, {"c", one, true}}).run()[0].dims(),
      Integers{0});
}

TEST(Edges, PadTakesAValueInEveryMode) {
  for (const char* mode : {"reflect", "edge", "wrap"}) {
    OneNode model("Pad", {{"x", reals({3}, {1, 2, 3})},
                          {"p", Array::from_ints(Integers{1, 1}), true},
                          {"v", Array::scalar(9, DType::f32), true}});
    set_text(*model.node, "mode", mode);
    EXPECT_EQ(model.run()[0].dims(), Integers{5}) << mode;
  }
}

}  // namespace
}  // namespace hone
