// What the functions of tensors compute, on the reference interpreter.
#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include "tensor/network.h"
#include "test/tensor/interpreted.h"

namespace hone::test {
namespace {

Tensor row(const std::vector<float>& x) { return constant(x, {std::ssize(x)}); }
// 0, 1, 2, ... in the given sizes.
Tensor counted(const Dims& dims) { return reshape(arange(Shape(dims).count(), DType::f32), dims); }

TEST(Tensor, BroadcastsAndTakesNumbers) {
  EXPECT_EQ(computed([] { return counted({2, 3}) + constant({10, 20}, {2, 1}); }),
            (List{10, 11, 12, 23, 24, 25}));
  EXPECT_EQ(computed([] { return 1 - row({1, 2}) * 0.5; }), (List{0.5, 0}));
  EXPECT_EQ(computed([] { return constant({7, -7}) / 2; }), (List{3, -3}));
  EXPECT_EQ(computed([] { return -row({1, -2}); }), (List{-1, 2}));
  EXPECT_EQ(computed([] {
              Tensor x = row({1, 2}), y = x;
              x += y;
              x *= 3;
              return x - y;
            }),
            (List{5, 10}));
}

TEST(Tensor, Compares) {
  EXPECT_EQ(computed([] { return row({1, 2, 3}) >= 2; }), (List{0, 1, 1}));
  EXPECT_EQ(computed([] { return 2 > row({1, 2, 3}); }), (List{1, 0, 0}));
  EXPECT_EQ(computed([] { return (row({1, 2, 3}) > 1) & ~(row({1, 2, 3}) == 3); }),
            (List{0, 1, 0}));
  EXPECT_EQ(computed([] { return where(row({1, -1}) > 0, row({5, 6}), 0); }), (List{5, 0}));
  EXPECT_EQ(computed([] { return clip(row({-3, 0.5, 3}), -1, 1); }), (List{-1, 0.5, 1}));
}

TEST(Tensor, ChangesShapes) {
  Program p("p");
  const Dim n = dim("n", 1, 8);
  p.entry("f", {{"x", f32({n, 2, 3})}}, [&](Tensor x) {
    EXPECT_EQ(flatten(x, 1).shape(), Shape({n, 6}));
    EXPECT_EQ(reshape(x, {n, -1}).shape(), Shape({n, 6}));
    EXPECT_EQ(reshape(x, {-1, 2}).shape(), Shape({n * Dim(3), 2}));
    EXPECT_EQ(transpose(x).shape(), Shape({n, 3, 2}));
    EXPECT_EQ(permute(x, {2, 0, -2}).shape(), Shape({3, n, 2}));
    EXPECT_EQ(unsqueeze(x, {0, -1}).shape(), Shape({1, n, 2, 3, 1}));
    EXPECT_EQ(squeeze(unsqueeze(x, -1), -1).shape(), x.shape());
    EXPECT_EQ(slice(x, -1, {.start = -2}).shape(), Shape({n, 2, 2}));
    EXPECT_EQ(select(x, 0, -1).shape(), Shape({2, 3}));
    EXPECT_EQ(sum(x, {0, -1}).shape(), Shape({2}));
    EXPECT_EQ(sum(x, {0, -1}, {.keepdims = true}).shape(), Shape({1, 2, 1}));
    EXPECT_EQ(mean(x).rank(), 0);
    EXPECT_EQ(x.size(-1), Dim(3));
    return Results{{"y", x}};
  });
}

TEST(Tensor, MovesElements) {
  EXPECT_EQ(computed([] { return slice(counted({5}), 0, {.start = 1, .end = -1, .step = 2}); }),
            (List{1, 3}));
  EXPECT_EQ(computed([] { return slice(counted({5}), 0, {.start = -2, .end = 100}); }),
            (List{3, 4}));
  EXPECT_EQ(computed([] { return concat({row({1}), row({2, 3})}, 0); }), (List{1, 2, 3}));
  EXPECT_EQ(computed([] { return stack({row({1, 2}), row({3, 4})}, -1); }), (List{1, 3, 2, 4}));
  EXPECT_EQ(computed([] { return split(counted({5}), {2, 3}, 0)[1]; }), (List{2, 3, 4}));
  EXPECT_EQ(computed([] { return chunk(counted({4}), 2, 0)[1]; }), (List{2, 3}));
  EXPECT_EQ(computed([] { return pad(row({1, 2}), {1}, {2}, 9); }), (List{9, 1, 2, 9, 9}));
  EXPECT_EQ(computed([] { return flip(row({1, 2, 3}), 0); }), (List{3, 2, 1}));
  EXPECT_EQ(computed([] { return take(counted({3, 2}), constant({2, 0}), 0); }),
            (List{4, 5, 0, 1}));
  EXPECT_EQ(computed([] { return gather(counted({2, 2}), 1, constant(integers({2, 1}, {1, 0}))); }),
            (List{1, 2}));
  EXPECT_EQ(computed([] { return scatter(zeros(f32({3})), 0, constant({2, 2}), row({1, 4})); }),
            (List{0, 0, 5}));
  EXPECT_EQ(computed([] { return one_hot(constant({1, 0}), 2); }), (List{0, 1, 1, 0}));
}

TEST(Tensor, Reduces) {
  EXPECT_EQ(computed([] { return prod(row({2, 3, 4})); }), (List{24}));
  EXPECT_EQ(computed([] { return max(counted({2, 3}), 0) - min(counted({2, 3}), 0); }),
            (List{3, 3, 3}));
  EXPECT_EQ(computed([] { return var(row({1, 2, 3, 4}), {}, {.correction = 0}); }), (List{1.25}));
  EXPECT_EQ(computed([] { return var(row({1, 3})); }), (List{2}));
  EXPECT_EQ(computed([] { return norm(row({3, 4})); }), (List{5}));
  EXPECT_EQ(computed([] { return argmax(row({1, 5, 5}), -1); }), (List{1}));
  EXPECT_EQ(computed([] { return cumsum(row({1, 2, 3}), 0); }), (List{1, 3, 6}));
  EXPECT_EQ(computed([] { return topk(row({1, 7, 5}), 2).places; }), (List{1, 2}));
  EXPECT_EQ(computed([] { return all(row({1, 2}) > 1); }), (List{0}));
  EXPECT_NEAR(computed([] { return logsumexp(row({1000, 1000}), 0) - 1000; })[0], 0.6931, 1e-3);
}

TEST(Tensor, Convolves) {
  EXPECT_EQ(computed([] {
              return conv2d(counted({1, 1, 3, 3}), ones(f32({1, 1, 2, 2})),
                            {.stride = 2, .padding = 1});
            }),
            (List{0, 3, 9, 24}));
  EXPECT_EQ(computed([] {
              return conv1d(counted({1, 2, 2}), ones(f32({2, 1, 1})),
                            {.groups = 2, .bias = constant({10, 20}, {2})});
            }),
            (List{10, 11, 22, 23}));
  EXPECT_EQ(computed([] { return max_pool2d(counted({1, 1, 2, 4}), 2); }), (List{5, 7}));
  EXPECT_EQ(computed([] { return avg_pool2d(counted({1, 1, 2, 4}), 2, {.stride = 2}); }),
            (List{2.5, 4.5}));
}

TEST(Tensor, AttendsAndNorms) {
  // Of equal scores, a causal query takes the mean of what it may see.
  EXPECT_EQ(computed([] {
              const Tensor q = zeros(f32({1, 2, 1})), v = constant({2, 6}, {1, 2, 1});
              return scaled_dot_product_attention(q, q, v, {.is_causal = true});
            }),
            (List{2, 4}));
  EXPECT_EQ(
      computed([] { return layer_norm(row({-1, 1}), ones(f32({2})), constant({5, 5}, {2}), 0); }),
      (List{4, 6}));
  EXPECT_EQ(computed([] { return rms_norm(row({3, 3}), ones(f32({2})), 0); }), (List{1, 1}));
  EXPECT_EQ(computed([] {
              return linear(counted({2, 1, 2}), constant({1, 1}, {1, 2}), constant({1}, {1}));
            }),
            (List{2, 6}));
}

TEST(Tensor, HasLosses) {
  const auto logits = [] { return constant({0, 0, 0, 0}, {2, 2}); };
  const double log2 = 0.6931471805599453;
  EXPECT_NEAR(computed([&] { return cross_entropy(logits(), constant({0, 1})); })[0], log2, 1e-6);
  EXPECT_NEAR(computed([&] {
                return cross_entropy(logits(), constant({0, -1}),
                                     {.ignore_index = -1, .label_smoothing = 0.5});
              })[0],
              log2, 1e-6);
  EXPECT_NEAR(computed([&] {
                return cross_entropy(
                    logits(), constant({0, 1}),
                    {.weight = constant({1, 3}, {2}), .reduction = Reduction::sum});
              })[0],
              4 * log2, 1e-6);
  EXPECT_EQ(computed([] { return mse_loss(row({1, 3}), row({0, 0})); }), (List{5}));
  EXPECT_EQ(computed([] { return l1_loss(row({1, -3}), 0, {Reduction::sum}); }), (List{4}));
  EXPECT_NEAR(
      computed([] { return binary_cross_entropy_with_logits(row({0, 0}), row({0, 1})); })[0], log2,
      1e-6);
}

TEST(Tensor, DrawsOtherNumbersAtEachCallAndRun) {
  Program p("p", {.seed = 3});
  p.entry("draw", {}, [] {
    return Results{{"a", rand(f32({1000}))}, {"b", rand(f32({1000}))}, {"n", randn(f32({1000}))}};
  });
  Interpreted run(p);
  auto first = run.run("draw"), second = run.run("draw");
  const auto mean_of = [](const Array& a) {
    double sum = 0;
    for (double x : numbers(a)) sum += x;
    return sum / static_cast<double>(a.count());
  };
  EXPECT_NE(numbers(first["a"]), numbers(first["b"]));
  EXPECT_NE(numbers(first["a"]), numbers(second["a"]));
  EXPECT_NEAR(mean_of(first["a"]), 0.5, 0.05);
  EXPECT_NEAR(mean_of(first["n"]), 0, 0.1);
  EXPECT_EQ(numbers(run.states["random.counter"])[0], 8);
}

TEST(Tensor, DropsOutOnlyInTraining) {
  Program p("p");
  const auto f = [](Tensor x) { return Results{{"y", dropout(x, 0.25)}}; };
  p.entry("train", {{"x", f32({1000})}}, f, {.training = true});
  p.entry("serve", {{"x", f32({1000})}}, f);
  Interpreted run(p);
  const Array x = floats({1000}, std::vector<float>(1000, 3));
  EXPECT_EQ(numbers(run.run("serve", {x})["y"]), numbers(x));
  int zeros = 0;
  for (double y : numbers(run.run("train", {x})["y"])) {
    EXPECT_TRUE(y == 0 || std::fabs(y - 4) < 1e-5) << y;
    zeros += y == 0;
  }
  EXPECT_NEAR(zeros, 250, 60);
}

TEST(Tensor, OutlivesItsProgram) {
  Tensor kept;
  {
    Program p("p");
    p.entry("f", {{"x", f32({2})}}, [&](Tensor x) {
      kept = x * 2;
      return Results{{"y", kept}};
    });
  }
  EXPECT_EQ(kept.shape(), Shape({2}));
}

}  // namespace
}  // namespace hone::test
