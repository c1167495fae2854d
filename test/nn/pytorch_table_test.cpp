// The right column of the table in docs/api.md, compiled and run; test/tools/docs_test.py compares.
#include <gtest/gtest.h>

#include "nn/layers.h"
#include "nn/optimizers.h"
#include "nn/recurrent.h"
#include "tensor/grad.h"
#include "test/tensor/interpreted.h"

namespace hone::test {
namespace {

TEST(FromPyTorch, TheTableCompiles) {
  struct Net : nn::Module {
    using Module::Module;
    nn::Linear fc{*this, "fc", {.in = 64, .out = 10}};
    nn::Dropout drop{.p = 0.5};
    Tensor operator()(const Tensor& x) const { return drop(fc(x)); }
  };
  struct Memory : nn::Module {
    using Module::Module;
    nn::LSTM lstm{*this, "lstm", {.in = 64, .hidden = 32, .layers = 2}};
    Tensor operator()(const Tensor& x) const {
      const auto [y, h, c] = lstm(x);
      return concat({y, h, c}, 0);
    }
  };
  Program p("p", {.seed = 0});
  Net net(p, "net");
  Memory memory(p, "memory");
  nn::SGD sgd(p, "sgd", net.parameters(), {.rate = 0.01, .momentum = 0.9});
  Variable scale = p.variable("scale", f32({}), 1);
  const Dim n = dim("batch", 1, 512);
  const auto step = [&](Tensor x, Tensor y) {
    Tensor loss = cross_entropy(net(x), y);
    sgd.step(grad(loss, net.parameters()));
    scale.set(scale * 0.5);
    return Results{{"loss", loss}};
  };
  p.entry("train", {{"x", f32({n, 64})}, {"y", i64({n})}}, step, {.training = true});
  p.entry("more", {{"x", f32({n, 2, 64})}, {"mask", Type(DType::b1, {n, 2, 64})}},
          [&](Tensor x, Tensor mask) {
            Tensor y = where(mask, x, 0) + x.size(1).number();
            y = reshape(y, {n, -1});
            y = transpose(y, 0, 1);
            y = sum(y, {0, -1}, {.keepdims = true});
            y = slice(x, 0, {.start = 1, .end = -1});
            y = select(x, 0, -1);
            y = take(x, constant({0, 1}), 1);
            y = gather(x, 1, zeros(i64({n, 1, 64})));
            y = memory(x);
            y = cast(y, DType::f16);
            y = stop_gradient(x);
            return Results{{"y", y}};
          });
  EXPECT_EQ(net.named_parameters()[0].first, "net.fc.weight");
  EXPECT_EQ(p.graph().entries.size(), 2u);
}

}  // namespace
}  // namespace hone::test
