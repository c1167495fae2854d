// A character GPT learns a verse and samples from it. Each sampled character computes the whole
// window again: a cache needs writes at a place that is an argument, which tensors do not offer
// yet.
#include <hone/hone.h>

#include <cstdio>
#include <string>

using namespace hone;

const std::string text =
    "tiger tiger, burning bright, in the forests of the night; what immortal hand or eye, could "
    "frame thy fearful symmetry? in what distant deeps or skies, burnt the fire of thine eyes? ";
constexpr int64_t length = 32, width = 64, batch = 32, letters = 128;

struct Gpt : nn::Module {
  using Module::Module;
  nn::Embedding token{*this, "token", {.count = letters, .width = width}},
      place{*this, "place", {.count = length, .width = width}};
  nn::TransformerBlock first{*this, "first", {.width = width, .heads = 4, .is_causal = true}},
      second{*this, "second", {.width = width, .heads = 4, .is_causal = true}};
  nn::LayerNorm norm{*this, "norm", width};
  Tensor operator()(const Tensor& tokens) const {  // the head is tied to the embedding
    const Tensor x = token(tokens) + place(arange(length));
    return linear(norm(second(first(x))), token.weight);
  }
};

int main() {
  Program p("gpt", {.seed = 11});
  Gpt net(p, "gpt");
  nn::AdamW adam(p, "adam", net.parameters(), {.rate = 3e-3});
  const Array verse = Array::of<char>(DType::u8, {std::ssize(text)}, text);

  p.entry("train", {}, [&] {
    Tensor from = cast(rand(f32({batch, 1})) * double(text.size() - length - 1), DType::i64);
    Tensor window = cast(take(constant(verse), from + arange(length + 1)), DType::i64);
    Tensor x = slice(window, 1, {.end = -1}), y = slice(window, 1, {.start = 1});
    Tensor loss = cross_entropy(flatten(net(x), 0, 1), flatten(y));
    adam.step(grad(loss, net.parameters()));
    return Results{{"loss", loss}};
  });
  p.entry("next", {{"tokens", i64({1, length})}}, [&](Tensor tokens) {
    return Results{{"token", categorical(select(net(tokens), 1, -1) / 0.5)}};
  });

  runtime::Executable exe = compile(p).load();
  runtime::State state(exe);
  runtime::Session train(exe, {.entry = "train", .states = {&state}}),
      next(exe, {.entry = "next", .states = {&state}});
  double loss = 0;
  for (int step = 0; step < 260; ++step) loss = run(train, {})[0].real(0);
  std::vector<int64_t> tokens(text.begin(), text.begin() + length);
  for (int i = 0; i < 100; ++i) {
    const Array in = Array::of<int64_t>(DType::i64, {1, length}, std::span(tokens).last(length));
    tokens.push_back(run(next, {in})[0].integer(0));
  }
  std::printf("loss %.3f\n%s\n", loss, std::string(tokens.begin(), tokens.end()).c_str());
  return loss < 0.3 ? 0 : 1;
}
