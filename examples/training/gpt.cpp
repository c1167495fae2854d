// A character GPT learns a verse and samples from it. Each sampled character computes the whole
// window again: a cache needs writes at a place that is an argument, which tensors do not offer
// yet.
#include <hone/hone.h>

#include <cstdio>

using namespace hone;

const std::string text =
    "tiger tiger, burning bright, in the forests of the night; what immortal hand or eye, could "
    "frame thy fearful symmetry? in what distant deeps or skies, burnt the fire of thine eyes? ";
constexpr int64_t length = 48, width = 64, batch = 16, letters = 128;

struct Gpt : nn::Module {
  using Module::Module;
  nn::Embedding token{*this, "token", {.count = letters, .width = width}},
      place{*this, "place", {.count = length, .width = width}};
  nn::TransformerBlock block{*this, "block", {.width = width, .heads = 4, .is_causal = true}};
  nn::LayerNorm norm{*this, "norm", width};
  nn::KvCache cache{*this, "cache", {.heads = 4, .length = length, .width = width}};
  Tensor head(const Tensor& x) const { return linear(norm(x), token.weight); }  // tied
  Tensor operator()(const Tensor& t) const { return head(block(token(t) + place(arange(length)))); }
  Tensor next(const Tensor& t, const Tensor& at) const {
    return head(block.decode(token(t) + place(at), cache, at));
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
    Tensor logits = net(slice(window, 1, {.end = -1}));
    Tensor loss = cross_entropy(transpose(logits), slice(window, 1, {.start = 1}));
    adam.step(grad(loss, net.parameters()));
    return Results{{"loss", loss}};
  });
  p.entry("next", {{"token", i64({1, 1})}, {"at", i64({})}}, [&](Tensor token, Tensor at) {
    return Results{{"token", categorical(net.next(token, at) / 0.5)}};
  });

  runtime::Executable exe = compile(p).load();
  runtime::State state(exe);  // a server has one of group "cache" for each user
  runtime::Session train(exe, {.entry = "train", .states = {&state}}),
      next(exe, {.entry = "next", .states = {&state}});
  std::string sampled = "tiger";
  double loss = 0;
  for (int step = 0; step < 400; ++step) loss = run(train, {})[0].real(0);
  for (int64_t at = 0; at + 1 < length; ++at) {
    const int64_t token = sampled[size_t(at)];
    const Array in = Array::of<int64_t>(DType::i64, {1, 1}, std::span(&token, 1));
    const Array out = run(next, {in, Array::scalar_int(at, DType::i64)})[0];
    if (at + 1 == std::ssize(sampled)) sampled += char(out.integer(0));
  }
  std::printf("loss %.3f: %s\n", loss, sampled.c_str());
  return loss < 0.3 ? 0 : 1;
}
