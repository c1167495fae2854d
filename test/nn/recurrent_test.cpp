// Recurrent layers on the reference interpreter: names, values against formulas of numbers,
// derivatives against differences, mistakes, and training. PyTorch's are in test/peers/derivatives.
#include "nn/recurrent.h"

#include <gtest/gtest.h>

#include "nn/layers.h"
#include "nn/optimizers.h"
#include "tensor/grad.h"
#include "test/tensor/interpreted.h"

namespace hone::test {
namespace {

Array drawn(std::vector<std::int64_t> dims, std::uint64_t seed) {
  return Start::normal(0, 1).of(f32(Shape(dims_of(dims))), seed);
}

std::vector<std::string> state_names(const nn::Module& m) {
  std::vector<std::string> out;
  for (const auto& [name, v] : m.named_parameters()) out.push_back(cat(name, v.type()));
  return out;
}

TEST(Recurrent, StatesAreNamedAsInPyTorch) {
  Program p("p");
  nn::Module root(p, "m");
  const nn::LSTM lstm(root, "lstm", {.in = 3, .hidden = 5, .layers = 2, .bidirectional = true});
  const nn::GRU gru(root, "gru", {.in = 3, .hidden = 5, .bias = false});
  EXPECT_EQ(state_names(gru), (std::vector<std::string>{"m.gru.weight_ih_l0f32[15,3]",
                                                        "m.gru.weight_hh_l0f32[15,5]"}));
  const std::vector<std::string> names = state_names(lstm);
  ASSERT_EQ(names.size(), 16u);
  EXPECT_EQ(names[0], "m.lstm.weight_ih_l0f32[20,3]");
  EXPECT_EQ(names[1], "m.lstm.weight_hh_l0f32[20,5]");
  EXPECT_EQ(names[2], "m.lstm.bias_ih_l0f32[20]");
  EXPECT_EQ(names[3], "m.lstm.bias_hh_l0f32[20]");
  EXPECT_EQ(names[4], "m.lstm.weight_ih_l0_reversef32[20,3]");
  EXPECT_EQ(names[8], "m.lstm.weight_ih_l1f32[20,10]");
  EXPECT_EQ(names[15], "m.lstm.bias_hh_l1_reversef32[20]");
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// One unit, one number a step.
TEST(Recurrent, OneUnitFollowsTheFormulas) {
  Program p("p");
  nn::Module root(p, "m");
  const nn::LSTM lstm(root, "lstm", {.in = 1, .hidden = 1});
  const nn::GRU gru(root, "gru", {.in = 1, .hidden = 1});
  p.entry("f", {{"x", f32({3, 1, 1})}}, [&](Tensor x) {
    const auto [y, h, c] = lstm(x);
    return Results{{"y", y}, {"h", h}, {"c", c}, {"gru", gru(x).output}};
  });
  Interpreted run(p);
  const List x = {0.5, -1, 2};
  auto got = run.run("f", {floats({3, 1, 1}, {0.5F, -1, 2})});
  const auto part = [&](const std::string& m, const char* what, std::size_t gate) {
    return numbers(run.states.at(cat("m.", m, ".", what, "_l0"))).at(gate);
  };
  const auto gate_of = [&](const std::string& m, std::size_t gate, double in, double h) {
    return part(m, "weight_ih", gate) * in + part(m, "bias_ih", gate) +
           part(m, "weight_hh", gate) * h + part(m, "bias_hh", gate);
  };
  double h = 0, c = 0, g = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto gate = [&](std::size_t k) { return gate_of("lstm", k, x[i], h); };
    c = logistic(gate(1)) * c + logistic(gate(0)) * std::tanh(gate(2));
    h = logistic(gate(3)) * std::tanh(c);
    EXPECT_NEAR(got["y"].real(static_cast<std::int64_t>(i)), h, 1e-6);
    const auto of_gru = [&](std::size_t k) { return gate_of("gru", k, x[i], g); };
    const double reset = logistic(of_gru(0)), update = logistic(of_gru(1));
    const double fresh =
        std::tanh(part("gru", "weight_ih", 2) * x[i] + part("gru", "bias_ih", 2) +
                  reset * (part("gru", "weight_hh", 2) * g + part("gru", "bias_hh", 2)));
    g = (1 - update) * fresh + update * g;
    EXPECT_NEAR(got["gru"].real(static_cast<std::int64_t>(i)), g, 1e-6);
  }
  EXPECT_NEAR(got["h"].real(0), h, 1e-6);
  EXPECT_NEAR(got["c"].real(0), c, 1e-6);
}

template <class M>
void expect_recurrent(const nn::RecurrentOptions& options, const Dims& sizes) {
  Program p("p");
  nn::Module root(p, "m");
  const M m(root, "layer", options);
  std::vector<std::string> of = {"x"};
  for (const Variable& v : root.parameters()) of.push_back(v.name());
  p.entry("f", {{"x", f32(Shape(sizes))}}, [&](Tensor x) {
    const auto y = m(x);
    const Tensor loss = weighed(y.output) + weighed(y.h_n);
    Results out{{"loss", loss}, {"dx", grad(loss, Tensors{x})[0]}};
    for (const Tensor& d : grad(loss, root.parameters())) out.add(cat("d", out.all().size()), d);
    return out;
  });
  expect_differences(p, of, {{"x", drawn(Shape(sizes).numbers(), 5)}});
}

TEST(Recurrent, DerivativesAreDifferences) {
  const nn::RecurrentOptions one = {.in = 2, .hidden = 3};
  const nn::RecurrentOptions all = {
      .in = 2, .hidden = 3, .layers = 2, .batch_first = true, .bidirectional = true};
  expect_recurrent<nn::LSTM>(one, {4, 2, 2});
  expect_recurrent<nn::LSTM>(all, {2, 3, 2});
  expect_recurrent<nn::GRU>(one, {4, 2, 2});
  expect_recurrent<nn::GRU>(all, {2, 3, 2});
}

TEST(Recurrent, MistakesAreNamed) {
  const auto error_of = [](const nn::RecurrentOptions& o, const Dims& sizes, const Dims& state) {
    try {
      Program p("p");
      nn::Module root(p, "m");
      const nn::GRU m(root, "gru", o);
      p.entry("f", {{"x", f32(Shape(sizes))}, {"h", f32(Shape(state))}},
              [&](Tensor x, Tensor h) { return Results{{"y", m(x, h).output}}; });
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  const auto expect = [](const std::string& error, const char* text) {
    EXPECT_NE(error.find(text), std::string::npos) << error;
    EXPECT_NE(error.find("recurrent_test.cpp:"), std::string::npos) << error;
  };
  expect(error_of({.in = 2}, {4, 2, 2}, {1, 2, 3}),
         "module 'm.gru': .hidden is 0, expected at least 1");
  expect(error_of({.in = 2, .hidden = 3}, {4, 2}, {1, 2, 3}),
         "module 'm.gru': x is f32[4,2], expected rank 3: [steps, n, 2]");
  expect(error_of({.in = 2, .hidden = 3, .batch_first = true}, {4, 2, 5}, {1, 2, 3}),
         "module 'm.gru': x is f32[4,2,5], expected rank 3: [n, steps, 2]");
  expect(
      error_of({.in = 2, .hidden = 3}, {4, 2, 2}, {1, 4, 3}),
      "module 'm.gru': a state is f32[1,4,3], expected [1,2,3]: [layers * directions, n, hidden]");
  EXPECT_EQ(error_of({.in = 2, .hidden = 3}, {4, 2, 2}, {1, 2, 3}), "no error");
}

// The sign of a sequence's first number, after others: what is asked for must be remembered.
template <class M>
double loss_after_training() {
  Program p("p", {.seed = 3});
  nn::Module net(p, "net");
  const M m(net, "m", {.in = 1, .hidden = 6});
  const nn::Linear head(net, "head", {.in = 6, .out = 1});
  const nn::Adam by(p, "by", net.parameters(), {.rate = 0.05});
  p.entry("train", {{"x", f32({5, 16, 1})}},
          [&](Tensor x) {
            const Tensor target = cast(select(x, 0, 0) > 0, DType::f32);
            const Tensor loss =
                binary_cross_entropy_with_logits(head(select(m(x).output, 0, -1)), target);
            by.step(grad(loss, net.parameters()));
            return Results{{"loss", loss}};
          },
          {.training = true});
  Interpreted run(p);
  double loss = 0;
  for (std::uint64_t i = 0; i < 60; ++i)
    loss = run.run("train", {drawn({5, 16, 1}, i % 4)})["loss"].real(0);
  return loss;
}

TEST(Recurrent, LearnToRemember) {
  EXPECT_LT(loss_after_training<nn::LSTM>(), 0.2);
  EXPECT_LT(loss_after_training<nn::GRU>(), 0.2);
}

}  // namespace
}  // namespace hone::test
