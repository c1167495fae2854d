// A convolutional network with batch norm learns the handwritten digits of examples/digits and is
// saved as a plan that only classifies. usage: train_convolution DIGITS
#include <hone/hone.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>

using namespace hone;

struct Net : nn::Module {  // made with a parent and a name: its states are "net.conv.weight", ...
  using Module::Module;
  nn::Conv2d conv{*this, "conv", {.in = 1, .out = 32, .kernel = 3, .padding = 1}};
  nn::BatchNorm2d norm{*this, "norm", 32};
  nn::Linear head{*this, "head", {.in = 32 * 4 * 4, .out = 10}};
  Tensor operator()(const Tensor& x) const {
    return head(flatten(max_pool2d(relu(norm(conv(x))), 2), 1));
  }
};

int main(int, char** argv) {
  const auto file = [&](const char* name) { return read_array(std::string(argv[1]) + name); };
  const Array images = file("/training_images.npy"), labels = file("/training_labels.npy");  // u8
  Dim n = dim("batch", 1, 512);
  Program p("digits", {.seed = 7});
  Net net(p, "net");
  nn::AdamW adam(p, "adam", net.parameters(), {.rate = 4e-3});  // rate and moments are states
  nn::Ema ema(p, "ema", net.parameters(), 0.99);
  const auto train_on = [&](Tensor which) {  // called once; set() takes effect in order
    Tensor x = cast(take(constant(images), which), DType::f32) / 16;
    Tensor loss = cross_entropy(net(x), cast(take(constant(labels), which), DType::i64));
    adam.step(grad(loss, net.parameters()));
    ema.update();
    return Results{{"loss", loss}};
  };
  p.entry("train", {{"which", i64({n})}}, train_on, {.training = true});
  p.entry("classify", {{"image", f32({n, 1, 8, 8})}}, [&](Tensor x) {
    return Results{{"digit", ema.use([&] { return argmax(net(x), -1); })}};
  });

  runtime::Executable exe = compile(p).load();
  runtime::State model(exe);
  runtime::Session train(exe, {.entry = "train", .states = {&model}});
  std::vector<int64_t> order(1347);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(3);
  for (int epoch = 0; epoch < 15; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    for (size_t at = 0; at + 64 <= order.size(); at += 64)
      run(train, {Array::from_ints(std::span(order).subspan(at, 64))});
  }
  compile(frozen(p.only({"classify"}), model)).save("digits_trained.hone");  // weights, no states
  runtime::Session classify(runtime::Executable("digits_trained.hone"));
  const Array got = run(classify, {file("/images.npy")})[0], truth = file("/labels.npy");
  int right = 0;
  for (int64_t i = 0; i < truth.count(); ++i) right += got.integer(i) == truth.integer(i);
  std::printf("%d of 450\n", right);
  return right >= 437 ? 0 : 1;  // 97 %
}
