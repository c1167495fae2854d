// A transformer encoder learns to name the largest of eight numbers, drawn by its own entry.
#include <hone/hone.h>

#include <cstdio>

using namespace hone;

constexpr int64_t numbers = 16, length = 8, width = 32, batch = 64;

struct Encoder : nn::Module {
  using Module::Module;
  nn::Embedding token{*this, "token", {.count = numbers, .width = width}};
  nn::TransformerBlock first{*this, "first", {.width = width, .heads = 4, .dropout = 0.05}},
      second{*this, "second", {.width = width, .heads = 4, .dropout = 0.05}};
  nn::LayerNorm norm{*this, "norm", width};
  nn::Linear head{*this, "head", {.in = width, .out = numbers}};
  Tensor operator()(const Tensor& tokens) const {
    return head(mean(norm(second(first(token(tokens)))), 1));
  }
};

int main() {
  Program p("largest", {.seed = 5});
  Encoder net(p, "net");
  nn::AdamW adam(p, "adam", net.parameters(), {.rate = 2e-3});
  const auto drawn = [] { return cast(rand(f32({batch, length})) * numbers, DType::i64); };

  p.entry("train", {},
          [&] {
            Tensor tokens = drawn();
            Tensor loss = cross_entropy(net(tokens), max(tokens, -1), {.label_smoothing = 0.02});
            Tensors gradients = grad(loss, net.parameters());
            nn::clip_grad_norm(gradients, 1);
            adam.step(gradients);
            return Results{{"loss", loss}};
          },
          {.training = true});
  p.entry("test", {}, [&] {  // without dropout
    Tensor tokens = drawn();
    return Results{{"right", mean(cast(argmax(net(tokens), -1) == max(tokens, -1), DType::f32))}};
  });

  runtime::Executable exe = compile(p).load();
  runtime::State state(exe);
  runtime::Session train(exe, {.entry = "train", .states = {&state}}),
      test(exe, {.entry = "test", .states = {&state}});
  for (int step = 0; step <= 600; ++step) {
    const double loss = run(train, {})[0].real(0);
    if (step % 100 == 0) std::printf("step %4d: loss %.4f\n", step, loss);
  }
  double right = 0;
  for (int i = 0; i < 10; ++i) right += run(test, {})[0].real(0) / 10;
  std::printf("%.1f %% right\n", 100 * right);
  return right >= 0.95 ? 0 : 1;
}
