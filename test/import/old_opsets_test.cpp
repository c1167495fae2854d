// Forms of operators that only older opsets have.
#include <cmath>

#include "one_node.h"

namespace hone {
namespace {

TEST(OldOpsets, CastToANamedType) {
  OneNode cast("Cast", {{"x", reals({4}, {-1.5F, 0, 2.75F, 3})}}, 1, 1);
  set_text(*cast.node, "to", "INT32");
  const Array y = cast.run()[0];
  EXPECT_EQ(y.dtype(), DType::i32);
  EXPECT_EQ(numbers_of(y), (std::vector<double>{-1, 0, 2, 3}));
  OneNode small("Cast", {{"x", counting({2})}}, 1, 5);
  set_text(*small.node, "to", "double");
  EXPECT_EQ(small.run()[0].dtype(), DType::f64);
  OneNode wrong("Cast", {{"x", counting({2})}}, 1, 1);
  set_text(*wrong.node, "to", "REAL");
  expect_contains(wrong.refusal(), "attribute 'to' is 'REAL', expected the name of an ONNX type");
}

TEST(OldOpsets, NearestPixelsOfResize) {
  // (y + 0.5) / scale: 0.25 0.75 1.25 1.75, and 1/6 3/6 5/6 7/6 9/6 11/6.
  const auto resized = [](std::int64_t opset) {
    OneNode n("Resize",
              {{"x", counting({1, 1, 2, 2})},
               {"roi", reals({0}, {}), true},
               {"scales", reals({4}, {1, 1, 2, 3}), true}},
              1, opset);
    set_text(*n.node, "mode", "nearest");
    set_text(*n.node, "nearest_mode", "floor");
    set_text(*n.node, "coordinate_transformation_mode", "tf_half_pixel_for_nn");
    return n;
  };
  EXPECT_EQ(numbers_of(resized(11).run()[0]),
            (std::vector<double>{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1,
                                 2, 2, 2, 3, 3, 3, 2, 2, 2, 3, 3, 3}));
  expect_contains(resized(13).refusal(), "coordinate_transformation_mode");
}

// x [2, 2, 2], scale, bias, mean, variance.
std::vector<Given> norm_operands(std::vector<std::int64_t> statistics) {
  const auto all = [&](float first, float step) {
    Array a = Array::zeros(DType::f32, statistics);
    for (std::int64_t i = 0; i < a.count(); ++i)
      a.set_real(i, static_cast<double>(first + step * static_cast<float>(i)));
    return a;
  };
  return {{"x", reals({2, 2, 2}, {1, 2, 3, 5, 7, 4, 0, -2})},
          {"scale", all(1, 1), true},
          {"bias", all(0, 1), true},
          {"mean", all(2, -1), true},
          {"variance", all(4, 2), true}};
}

TEST(OldOpsets, BatchNormalizationThatTrains) {
  for (const std::int64_t opset : {6, 7, 9}) {
    OneNode n("BatchNormalization", norm_operands({2}), 5, opset);
    set_real(*n.node, "momentum", 0.75F);
    const std::vector<Array> y = n.run();
    // Channel 0 has 1 2 7 4: mean 3.5, variance 5.25. Channel 1 has 3 5 0 -2: 1.5, 7.25.
    const std::vector<std::vector<double>> expected = {{},
                                                       {2 * 0.75 + 3.5 / 4, 0.75 + 1.5 / 4},
                                                       {3 + 5.25 / 4, 6 * 0.75 + 7.25 / 4},
                                                       {3.5, 1.5},
                                                       {5.25, 7.25}};
    for (std::size_t i = 1; i < 5; ++i)
      for (std::int64_t k = 0; k < 2; ++k)
        EXPECT_NEAR(y[i].real(k), expected[i][static_cast<std::size_t>(k)], 1e-6) << opset << i;
    EXPECT_NEAR(y[0].real(0), (1 - 3.5) / std::sqrt(5.25 + 1e-5), 1e-5);
    EXPECT_NEAR(y[0].real(7), (-2 - 1.5) / std::sqrt(7.25 + 1e-5) * 2 + 1, 1e-5);
  }
  OneNode tested("BatchNormalization", norm_operands({2}), 1, 6);
  set_int(*tested.node, "is_test", 1);
  EXPECT_NEAR(tested.run()[0].real(0), (1 - 2) / std::sqrt(4 + 1e-5), 1e-5);
}

TEST(OldOpsets, BatchNormalizationOfEachPosition) {
  for (const int outputs : {1, 5}) {
    OneNode n("BatchNormalization", norm_operands({2, 2}), outputs, 7);
    set_int(*n.node, "spatial", 0);
    const std::vector<Array> y = n.run();
    // Position 3 has 5 and -2: mean 1.5, variance 12.25; given are -1 and 10.
    const double mean = outputs == 1 ? -1 : 1.5, variance = outputs == 1 ? 10 : 12.25;
    EXPECT_NEAR(y[0].real(3), (5 - mean) / std::sqrt(variance + 1e-5) * 4 + 3, 1e-5);
    if (outputs == 5) EXPECT_EQ(y[1].dims(), (std::vector<std::int64_t>{2, 2}));
  }
}

}  // namespace
}  // namespace hone
