// The program of the design: a convolutional network with batch norm, AdamW and a running mean of
// its parameters learns the digits of examples/digits, and classifies held-back ones.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "backend/backend.h"
#include "base/random.h"
#include "compile/program.h"
#include "import/tensor_file.h"
#include "nn/layers.h"
#include "nn/optimizers.h"
#include "runtime/prepare.h"
#include "runtime/session.h"
#include "tensor/grad.h"

namespace hone::test {
namespace {

struct Net : nn::Module {
  using Module::Module;
  nn::Conv2d conv{*this, "conv", {.in = 1, .out = 32, .kernel = 3, .padding = 1}};
  nn::BatchNorm2d norm{*this, "norm", 32};
  nn::Linear head{*this, "head", {.in = 32 * 4 * 4, .out = 10}};
  Tensor operator()(const Tensor& x) const {
    return head(flatten(max_pool2d(relu(norm(conv(x))), 2), 1));
  }
};

Program digits() {
  const Dim n = dim("batch", 1, 512);
  const Arg image{"image", f32({n, 1, 8, 8})}, label{"label", i64({n})};
  Program p("digits", {.seed = 7});
  Net net(p, "net");
  nn::AdamW adam(p, "adam", net.parameters(), {.rate = 4e-3});
  nn::Ema ema(p, "ema", net.parameters(), 0.99);
  p.entry("train", {image, label},
          [&](Tensor x, Tensor y) {
            const Tensor loss = cross_entropy(net(x), y);
            adam.step(grad(loss, net.parameters()));
            ema.update();
            return Results{{"loss", loss}};
          },
          {.training = true});
  p.entry("classify", {image}, [&](Tensor x) {
    return Results{{"digit", ema.use([&] { return argmax(net(x), -1); })}};
  });
  return p;
}

Array read(const char* name, DType to, double ink) {
  const Array a = read_npy(std::filesystem::path(HONE_SOURCE_DIR) / "examples/digits" / name);
  Array out = Array::zeros(to, a.dims());
  for (std::int64_t i = 0; i < a.count(); ++i)
    is_float(to) ? out.set_real(i, a.real(i) / ink) : out.set_integer(i, a.integer(i));
  return out;
}

Array rows(const Array& a, std::span<const std::int64_t> which) {
  std::vector<std::int64_t> dims = a.dims();
  dims[0] = std::ssize(which);
  Array out = Array::zeros(a.dtype(), dims);
  const std::size_t bytes = a.bytes().size() / static_cast<std::size_t>(a.dims()[0]);
  for (std::size_t i = 0; i < which.size(); ++i)
    std::ranges::copy(a.bytes().subspan(static_cast<std::size_t>(which[i]) * bytes, bytes),
                      out.writable_bytes().subspan(i * bytes).begin());
  return out;
}

TEST(Digits, AreLearnt) {
  const Plan plan = compile(digits().graph(), {.strategy = "cpu", .threads = 2, .cache = false});
  const auto executable = load_plan(std::make_shared<const Plan>(plan), open_devices(plan));
  State model(executable);
  Session train(executable, {.threads = 2, .entry = "train", .states = {model}}),
      classify(executable, {.threads = 2, .entry = "classify", .states = {model}});
  const Array images = read("training_images.npy", DType::f32, 16),
              labels = read("training_labels.npy", DType::i64, 1);
  std::vector<std::int64_t> order(static_cast<std::size_t>(labels.count()));
  std::iota(order.begin(), order.end(), 0);
  SplitMix64 random(3);
  constexpr int epochs = 20;
  double loss = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[random.next() % i]);
    model.write("adam.rate", Array::scalar(4e-3 * (1 - epoch / double{epochs}), DType::f32));
    for (std::size_t at = 0; at < order.size(); at += 64) {
      const auto which = std::span(order).subspan(at, std::min<std::size_t>(64, order.size() - at));
      loss = train.run(std::vector{rows(images, which), rows(labels, which)})[0].real(0);
    }
  }
  EXPECT_LT(loss, 0.05);
  const Array digit = classify.run(std::vector{read("images.npy", DType::f32, 1)})[0],
              truth = read("labels.npy", DType::i64, 1);
  int right = 0;
  for (std::int64_t i = 0; i < truth.count(); ++i) right += digit.integer(i) == truth.integer(i);
  EXPECT_GE(right, 437) << "of 450";  // 97 %
  RecordProperty("right", right);
  std::printf("%d of 450\n", right);
}

}  // namespace
}  // namespace hone::test
