// Layers and optimisers on the reference interpreter: names, derivatives against differences, and
// programs as their users write them.
#include "nn/layers.h"

#include <gtest/gtest.h>

#include "nn/optimizers.h"
#include "tensor/grad.h"
#include "test/tensor/interpreted.h"

namespace hone::test {
namespace {

std::vector<std::string> names_of(const Variables& variables) {
  std::vector<std::string> out;
  for (const Variable& v : variables) out.push_back(v.name());
  return out;
}

using Names = std::vector<std::string>;

TEST(Layers, AreNamedAsInPyTorch) {
  Program p("p");
  struct Net : nn::Module {
    using Module::Module;
    nn::Conv2d conv{*this, "conv", {.in = 3, .out = 8, .kernel = {3, 5}, .groups = 1}};
    nn::BatchNorm2d bn{*this, "bn", 8};
    nn::TransformerBlock block{*this, "block", {.width = 8, .heads = 2}};
    nn::Linear plain{*this, "plain", {.in = 8, .out = 2, .bias = false}};
  } net(p, "net");
  EXPECT_EQ(names_of(net.parameters()),
            (Names{"net.conv.weight", "net.conv.bias", "net.bn.weight", "net.bn.bias",
                   "net.block.norm1.weight", "net.block.norm1.bias", "net.block.norm2.weight",
                   "net.block.norm2.bias", "net.block.self_attn.in_proj_weight",
                   "net.block.self_attn.in_proj_bias", "net.block.self_attn.out_proj.weight",
                   "net.block.self_attn.out_proj.bias", "net.block.mlp.linear1.weight",
                   "net.block.mlp.linear1.bias", "net.block.mlp.linear2.weight",
                   "net.block.mlp.linear2.bias", "net.plain.weight"}));
  EXPECT_EQ(net.states().size(), net.parameters().size() + 2);
  EXPECT_EQ(net.conv.weight.type(), f32({8, 3, 3, 5}));
  EXPECT_EQ(net.plain.weight.type(), f32({2, 8}));
  EXPECT_EQ(net.named_parameters()[0].first, "net.conv.weight");
}

Array random_array(std::vector<std::int64_t> dims, std::uint64_t seed) {
  return Start::normal(0, 1).of(f32(Shape(dims_of(dims))), seed);
}

// d loss / d of the input and of each parameter of a layer. The start values of norms are moved off
// 1 and 0, where mistakes do not show.
void expect_layer(const Type& input, const std::function<nn::Module(nn::Module&)>& make,
                  const std::function<Tensor(const Tensor&)>& call, bool training = true) {
  Program p("p");
  nn::Module root(p, "m");
  make(root);
  Names of = {"x"};
  for (const Variable& v : root.parameters()) of.push_back(v.name());
  p.entry("f", {{"x", input}},
          [&](Tensor x) {
            const Tensor loss = weighed(call(x));
            Results out{{"loss", loss}, {"dx", grad(loss, Tensors{x})[0]}};
            for (const Tensor& d : grad(loss, root.parameters()))
              out.add(cat("d", out.all().size()), d);
            return out;
          },
          {.training = training});
  expect_differences(p, of, {{"x", random_array(input.shape.numbers(), 5)}});
}

template <class Layer, class... Options>
void expect_layer_of(const Type& input, bool training, const Options&... options) {
  std::optional<Layer> layer;
  expect_layer(
      input,
      [&](nn::Module& root) -> nn::Module {
        layer.emplace(root, "layer", options...);
        return *layer;
      },
      [&](const Tensor& x) { return (*layer)(x); }, training);
}

TEST(Layers, HaveDerivatives) {
  expect_layer_of<nn::Linear>(f32({3, 4}), true, nn::LinearOptions{.in = 4, .out = 2});
  expect_layer_of<nn::Conv1d>(
      f32({2, 4, 7}), true,
      nn::ConvOptions{.in = 4, .out = 6, .kernel = 3, .stride = 2, .padding = 1, .groups = 2});
  expect_layer_of<nn::Conv2d>(
      f32({2, 3, 6, 5}), true,
      nn::ConvOptions{.in = 3, .out = 4, .kernel = {2, 3}, .padding = {1, 0}, .dilation = {2, 1}});
  expect_layer_of<nn::BatchNorm1d>(f32({5, 3}), true, 3);
  expect_layer_of<nn::BatchNorm2d>(f32({2, 3, 2, 2}), true, 3);
  expect_layer_of<nn::BatchNorm2d>(f32({2, 3, 2, 2}), false, 3);
  expect_layer_of<nn::LayerNorm>(f32({2, 3, 4}), true, 4);
  expect_layer_of<nn::RMSNorm>(f32({2, 3, 4}), true, 4);
  expect_layer_of<nn::MultiheadAttention>(f32({2, 3, 4}), true,
                                          nn::AttentionOptions{.width = 4, .heads = 2});
  expect_layer_of<nn::Mlp>(f32({2, 4}), true, nn::MlpOptions{.width = 4, .hidden = 6});
  expect_layer_of<nn::TransformerBlock>(
      f32({2, 3, 4}), true, nn::BlockOptions{.width = 4, .heads = 2, .is_causal = true});
}

// Of functions of one tensor f32[2,3,4,4].
TEST(Functions, HaveDerivatives) {
  const std::function<Tensor(const Tensor&)> functions[] = {
      [](const Tensor& x) { return exp(x) / (1 + square(x)); },
      [](const Tensor& x) { return log(square(x) + 1) * sin(x) - cos(x); },
      [](const Tensor& x) { return rsqrt(square(x) + 0.5) + reciprocal(square(x) + 1); },
      [](const Tensor& x) { return tanh(x) + sigmoid(x) * silu(x); },
      [](const Tensor& x) { return gelu(x) - gelu(x, Gelu::tanh) * 2; },
      [](const Tensor& x) { return relu(x) + leaky_relu(x) + elu(x) + softplus(x) + erf(x); },
      [](const Tensor& x) { return abs(x) + pow(square(x) + 1, 1.5); },
      [](const Tensor& x) { return maximum(x, 0.25) * minimum(x, 0.5) + clip(x, -1, 1); },
      [](const Tensor& x) { return where(x > 0, x * 2, square(x)); },
      [](const Tensor& x) { return softmax(x, 1) + log_softmax(x, -1); },
      [](const Tensor& x) { return logsumexp(x, 1); },
      [](const Tensor& x) { return var(x, {1, 3}) + mean(x, {-1, 1}); },
      [](const Tensor& x) { return max(x, 1) * min(x, 1) + norm(x, 1); },
      [](const Tensor& x) { return prod(slice(x, 1, {.end = 2}), 1); },
      [](const Tensor& x) { return cumsum(x, 2) * flip(x, 2); },
      [](const Tensor& x) { return sort(x, 1).values + topk(x, 3, 1).values; },
      [](const Tensor& x) { return permute(x, {3, 1, 0, 2}); },
      [](const Tensor& x) { return matmul(x, transpose(x)); },
      [](const Tensor& x) { return concat({x, square(x)}, 1); },
      [](const Tensor& x) { return stack({x, concat(split(x, {1, 2}, 1), 1) * x, x}, 0); },
      [](const Tensor& x) { return pad(narrow(x, 2, 1, 2), {0, 0, 1, 0}, {0, 1, 0, 0}, 3.0); },
      [](const Tensor& x) { return take(x, constant({2, 0, 2}), 1); },
      [](const Tensor& x) { return scatter(x, 1, constant({1}), square(narrow(x, 1, 0, 1))); },
      [](const Tensor& x) { return max_pool2d(x, 2) + avg_pool2d(x, 2); },
      [](const Tensor& x) {
        return avg_pool2d(x, 3, {.stride = 1, .padding = 1, .count_include_pad = false});
      },
      [](const Tensor& x) { return max_pool2d(x, 3, {.stride = 2, .padding = 1}); },
      [](const Tensor& x) { return avg_pool2d(x, {2, 3}, {.stride = {2, 1}}); },
      [](const Tensor& x) {
        return cross_entropy(x, zeros(i64({2, 4, 4})), {.label_smoothing = 0.1});
      },
      [](const Tensor& x) { return mse_loss(x, 0.5) + l1_loss(x, 0.25); },
      [](const Tensor& x) { return binary_cross_entropy_with_logits(x, 0.3); },
      [](const Tensor& x) { return scaled_dot_product_attention(x, x, square(x)); },
      [](const Tensor& x) {
        return scaled_dot_product_attention(x, x * 2, x, {.is_causal = true, .scale = 0.3});
      },
      [](const Tensor& x) {
        const Tensor mask = arange(4) != 1;  // keys but one
        return scaled_dot_product_attention(x, x, x, {.mask = mask});
      },
  };
  for (const auto& f : functions)
    expect_layer(f32({2, 3, 4, 4}), [](nn::Module& root) { return root; }, f);
}

// d sum f / d x at a row of numbers.
List slopes(const std::function<Tensor(const Tensor&)>& f, const std::vector<float>& at) {
  Program p("p");
  const std::int64_t n = std::ssize(at);
  p.entry("f", {{"x", f32({1, n})}},
          [&](Tensor x) { return Results{{"d", grad(sum(f(x)), Tensors{x})[0]}}; });
  return numbers(Interpreted(p).run("f", {floats({1, n}, at)})["d"]);
}

TEST(Functions, HaveOneSidedDerivativesWhereTheyBend) {
  EXPECT_EQ(slopes([](const Tensor& x) { return elu(x, 0.5); }, {0, 1, 200}), (List{0.5, 1, 1}));
  EXPECT_EQ(slopes([](const Tensor& x) { return norm(x, 1); }, {0, 0}), (List{0, 0}));
  EXPECT_EQ(slopes([](const Tensor& x) { return norm(x, 0); }, {0, -2}), (List{0, -1}));
}

TEST(TransformerBlock, DecodesWhatItComputesAtOnce) {
  Program p("p");
  nn::Module root(p, "m");
  const nn::TransformerBlock block(root, "block", {.width = 4, .heads = 2, .is_causal = true});
  const nn::KvCache cache(root, "cache", {.heads = 2, .length = 3, .width = 4});
  p.entry("whole", {{"x", f32({1, 3, 4})}}, [&](Tensor x) { return Results{{"y", block(x)}}; });
  p.entry("next", {{"x", f32({1, 1, 4})}, {"at", i64({})}},
          [&](Tensor x, Tensor at) { return Results{{"y", block.decode(x, cache, at)}}; });
  Interpreted run(p);
  const Array x = random_array({1, 3, 4}, 3);
  const List whole = numbers(run.run("whole", {x})["y"]);
  for (std::int64_t i = 0; i < 3; ++i) {
    const Array one = floats({1, 1, 4}, std::vector<float>(x.as<float>().begin() + 4 * i,
                                                           x.as<float>().begin() + 4 * i + 4));
    const List y = numbers(run.run("next", {one, Array::scalar_int(i, DType::i64)})["y"]);
    for (std::size_t k = 0; k < 4; ++k)
      EXPECT_NEAR(y[k], whole[4 * static_cast<std::size_t>(i) + k], 1e-5) << i;
  }
}

TEST(BatchNorm, KeepsRunningStatistics) {
  Program p("p");
  nn::Module root(p, "m");
  const nn::BatchNorm1d norm(root, "norm", 1, {.momentum = 0.5});
  const auto f = [&](Tensor x) { return Results{{"y", norm(x)}}; };
  p.entry("train", {{"x", f32({2, 1})}}, f, {.training = true});
  p.entry("serve", {{"x", f32({2, 1})}}, f);
  Interpreted run(p);
  const Array x = floats({2, 1}, {1, 5});
  EXPECT_NEAR(run.run("train", {x})["y"].real(1), 1, 1e-5);
  EXPECT_EQ(run.states["m.norm.running_mean"].real(0), 1.5);  // half of 3
  EXPECT_EQ(run.states["m.norm.running_var"].real(0), 4.5);   // half of 1 and of 8
  EXPECT_NEAR(run.run("serve", {x})["y"].real(1), 3.5 / std::sqrt(4.5), 1e-5);
}

// ---- Optimisers, against numbers from PyTorch's formulas.

// The parameter after two steps with gradients 1 and 0.5.
template <class Optimizer, class Options>
double stepped(const Options& options) {
  Program p("p");
  Variable w = p.variable("w", f32({}), 1);
  const Optimizer by(p, "by", {w}, options);
  p.entry("step", {{"g", f32({})}}, [&](Tensor g) { by.step({g}); });
  Interpreted run(p);
  run.run("step", {Array::scalar(1, DType::f32)});
  run.run("step", {Array::scalar(0.5, DType::f32)});
  return run.states["w"].real(0);
}

TEST(Optimizers, FollowTheirFormulas) {
  EXPECT_NEAR((stepped<nn::SGD>(nn::SgdOptions{.rate = 0.1})), 0.85, 1e-6);
  // v = 1, 1.4: 1 - 0.1 - 0.14.
  EXPECT_NEAR((stepped<nn::SGD>(nn::SgdOptions{.rate = 0.1, .momentum = 0.9})), 0.76, 1e-6);
  // Directions 1 + 0.9, and 0.5 + 0.9 * 1.4.
  EXPECT_NEAR((stepped<nn::SGD>(nn::SgdOptions{.rate = 0.1, .momentum = 0.9, .nesterov = true})),
              1 - 0.19 - 0.176, 1e-6);
  // 1 - 0.1 (1 + 0.5) = 0.85; then - 0.1 (0.5 + 0.5 * 0.85).
  EXPECT_NEAR((stepped<nn::SGD>(nn::SgdOptions{.rate = 0.1, .weight_decay = 0.5})),
              0.85 - 0.1 * (0.5 + 0.425), 1e-6);
  // Moments 0.1, 0.001 corrected to 1, 1; then 0.14 / 0.19 and 0.001249 / 0.001999.
  const double second = (0.14 / 0.19) / std::sqrt(0.001249 / 0.001999);
  EXPECT_NEAR((stepped<nn::Adam>(nn::AdamOptions{.rate = 0.1})), 1 - 0.1 - 0.1 * second, 2e-5);
  const double first_w = 1 - 0.1 * (1 + 0.01);
  EXPECT_NEAR((stepped<nn::AdamW>(nn::AdamWOptions{.rate = 0.1})),
              first_w - 0.1 * (second + 0.01 * first_w), 2e-5);
}

TEST(Optimizers, NameTheirStatesAfterTheParameters) {
  Program p("p");
  nn::Module root(p, "net");
  const nn::Linear fc(root, "fc", {.in = 2, .out = 1, .bias = false});
  const nn::AdamW adam(p, "adam", root.parameters());
  EXPECT_EQ(names_of(p.variables()),
            (Names{"net.fc.weight", "adam.rate", "adam.step", "adam.net.fc.weight.exp_avg",
                   "adam.net.fc.weight.exp_avg_sq"}));
  EXPECT_EQ(p.graph().states[1].group, "optimizer");
}

TEST(Optimizers, ClipTheNormOfAllGradients) {
  Program p("p");
  p.entry("f", {{"a", f32({1})}, {"b", f32({1})}}, [](Tensor a, Tensor b) {
    Tensors g = {a, b};
    const Tensor norm = nn::clip_grad_norm(g, 1);
    return Results{{"norm", norm}, {"a", g[0]}};
  });
  auto got = Interpreted(p).run("f", {floats({1}, {3}), floats({1}, {4})});
  EXPECT_EQ(got["norm"].real(0), 5);
  EXPECT_NEAR(got["a"].real(0), 0.6, 1e-6);
}

TEST(Ema, IsUsedInsteadOfTheParameters) {
  Program p("p");
  nn::Module root(p, "net");
  const nn::Linear fc(root, "fc", {.in = 1, .out = 1, .bias = false});
  const nn::Ema ema(p, "ema", root.parameters(), 0.75);
  p.entry("train", {}, [&] {
    fc.weight.set(fc.weight + 4);
    ema.update();
  });
  p.entry("serve", {{"x", f32({1, 1})}}, [&](Tensor x) {
    return Results{{"mean", ema.use([&] { return fc(x); })}, {"now", fc(x)}};
  });
  Interpreted run(p);
  const double start = run.states["net.fc.weight"].real(0);
  run.run("train");
  auto got = run.run("serve", {floats({1, 1}, {1})});
  EXPECT_NEAR(got["now"].real(0), start + 4, 1e-6);
  EXPECT_NEAR(got["mean"].real(0), start + 1, 1e-6);
}

// ---- Programs

struct Mlp : nn::Module {
  Mlp(Program& p, std::string name, std::int64_t in, std::int64_t out)
      : Module(p, std::move(name)),
        first(*this, "first", {.in = in, .out = 16}),
        last(*this, "last", {.in = 16, .out = out}) {}
  nn::Linear first, last;
  Tensor operator()(const Tensor& x) const { return last(leaky_relu(first(x), 0.2)); }
};

TEST(Programs, AGanHasTwoOptimisersInOneEntry) {
  Program p("gan", {.seed = 2});
  const Mlp generator(p, "generator", 4, 1), judge(p, "judge", 1, 1);
  const nn::Adam make(p, "make", generator.parameters(), {.rate = 5e-3}),
      find(p, "find", judge.parameters(), {.rate = 5e-3});
  p.entry("train", {}, [&] {
    const Tensor real = randn(f32({64, 1})) * 0.5 + 3, fake = generator(randn(f32({64, 4})));
    const auto loss_of = binary_cross_entropy_with_logits;
    const Tensor judged = loss_of(judge(real), 1, {}) + loss_of(judge(stop_gradient(fake)), 0, {});
    find.step(grad(judged, judge.parameters()));
    const Tensor made = loss_of(judge(fake), 1, {});  // by the judge as it is now
    make.step(grad(made, generator.parameters()));
    return Results{{"mean", mean(fake)}};
  });
  Interpreted run(p);
  double mean = 0;  // of the last of the steps
  for (int i = 0; i < 800; ++i)
    mean += run.run("train")["mean"].real(0) * (i < 600 ? 0 : 1 / 200.0);
  EXPECT_NEAR(mean, 3, 0.5);
}

TEST(Programs, AFrozenPartIsWhatIsNotGivenToGrad) {
  Program p("p");
  const Mlp base(p, "base", 2, 2), head(p, "head", 2, 1);
  const nn::SGD sgd(p, "sgd", head.parameters());
  p.entry("train", {{"x", f32({3, 2})}},
          [&](Tensor x) { sgd.step(grad(sum(square(head(base(x)))), head.parameters())); });
  for (const StateVariable& s : p.graph().states) {
    Interpreted run(p);
    run.run("train", {floats({3, 2}, {1, 2, 3, 4, 5, 6})});
    const bool is_trained = s.name.starts_with("head.");
    EXPECT_EQ(numbers(run.states[s.name]) != numbers(*s.start), is_trained) << s.name;
  }
}

TEST(Programs, ATiedHeadIsOneParameter) {
  Program p("p");
  nn::Module root(p, "m");
  const nn::Embedding token(root, "token", {.count = 5, .width = 3});
  struct Head : nn::Module {
    Head(nn::Module& parent, const Variable& weight) : Module(parent, "head"), weight(weight) {
      tie(weight);
    }
    Variable weight;
  } head(root, token.weight);
  EXPECT_EQ(root.parameters().size(), 1u);
  p.entry("f", {}, [&] {
    const Tensor loss = weighed(linear(token(constant({1, 4})), head.weight));
    return Results{{"loss", loss}, {"d", grad(loss, root.parameters())[0]}};
  });
  expect_differences(p, {"m.token.weight"}, {});
}

TEST(Programs, AreFrozenToWeights) {
  Program p("p");
  const Mlp net(p, "net", 2, 1);
  p.entry("train", {}, [&] { net.last.bias.set(7); });
  p.entry("serve", {{"x", f32({1, 2})}}, [&](Tensor x) { return Results{{"y", net(x)}}; });
  Interpreted run(p);
  run.run("train");
  std::vector<std::pair<std::string, Array>> values(run.states.begin(), run.states.end());
  const Program frozen = p.only({"serve"}).frozen(values);
  EXPECT_TRUE(frozen.graph().states.empty());
  const Array x = floats({1, 2}, {1, -1});
  EXPECT_EQ(numbers(Interpreted(frozen).run("serve", {x})["y"]),
            numbers(run.run("serve", {x})["y"]));
}

}  // namespace
}  // namespace hone::test
