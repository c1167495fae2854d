// A multilayer perceptron learns sin(3 x) from points that its own entry draws.
#include <hone/hone.h>

#include <cstdio>

using namespace hone;

struct Mlp : nn::Module {
  using Module::Module;
  nn::Linear first{*this, "first", {.in = 1, .out = 64}},
      second{*this, "second", {.in = 64, .out = 64}}, last{*this, "last", {.in = 64, .out = 1}};
  Tensor operator()(const Tensor& x) const { return last(tanh(second(tanh(first(x))))); }
};

int main() {
  Program p("sine", {.seed = 1});
  Mlp net(p, "net");
  nn::Adam adam(p, "adam", net.parameters(), {.rate = 1e-2});

  p.entry("train", {}, [&] {
    Tensor x = rand(f32({256, 1})) * 2 - 1;
    Tensor loss = mse_loss(net(x), sin(3 * x));
    adam.step(grad(loss, net.parameters()));
    return Results{{"loss", loss}};
  });
  p.entry("predict", {{"x", f32({dim("n", 1, 1024), 1})}},
          [&](Tensor x) { return Results{{"y", net(x)}}; });

  runtime::Executable exe = compile(p).load();
  runtime::State state(exe);
  runtime::Session train(exe, {.entry = "train", .states = {&state}}),
      predict(exe, {.entry = "predict", .states = {&state}});
  double loss = 0;
  for (int step = 0; step < 2000; ++step) {
    write(state, "adam.rate", Array::scalar(1e-2 * (1 - step / 2000.0), DType::f32));
    loss = run(train, {})[0].real(0);
    if (step % 400 == 0) std::printf("step %4d: loss %.5f\n", step, loss);
  }
  const float at = 0.5f;
  const Array y = run(predict, {Array::of<float>(DType::f32, {1, 1}, std::span(&at, 1))})[0];
  std::printf("loss %.5f, sin(1.5) is about %.3f\n", loss, y.real(0));
  return loss < 2e-3 ? 0 : 1;
}
