// Optimisers: their moments, count and rate are states, which a step sets together with the
// parameters. A state of `adam` for the parameter "net.weight" is "adam.net.weight.exp_avg", of
// group "optimizer".
//
//   nn::AdamW adam(p, "adam", net.parameters(), {.rate = 1e-3});
//   p.entry("train", {x, y}, [&](Tensor x, Tensor y) {
//     Tensor loss = cross_entropy(net(x), y);
//     adam.step(grad(loss, net.parameters()));
//     return Results{{"loss", loss}};
//   }, {.training = true});
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensor/program.h"

namespace hone::nn {

// What all optimisers have. The rate is the f32 state NAME.rate: a schedule writes it between runs.
class Optimizer {
 public:
  const Variables& parameters() const { return parameters_; }
  const Variable& rate() const { return rate_; }

 protected:
  Optimizer(Program&, std::string name, Variables parameters, double rate, Where);
  Variables per_parameter(Program&, const std::string& what, Where) const;
  void expect_one_each(const Tensors& gradients) const;

  std::string name_;
  Variables parameters_;
  Variable rate_;
};

// w -= rate * (g + weight_decay * w), or with momentum the direction of formulas::next_velocity().
struct SgdOptions {
  double rate = 1e-2, momentum = 0, weight_decay = 0;
  bool nesterov = false;
};
class SGD : public Optimizer {
 public:
  SGD(Program&, std::string name, Variables parameters, SgdOptions = {}, Where = Where::current());
  // One gradient for each parameter, in their order.
  void step(const Tensors& gradients, Where = Where::current()) const;

 private:
  SgdOptions options_;
  Variables velocity_;  // NAME.PARAMETER.momentum_buffer; none without momentum
};

// Kingma and Ba, "Adam", 2015. The decay is part of the gradient.
struct AdamOptions {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
};
class Adam : public Optimizer {
 public:
  Adam(Program& p, std::string name, Variables parameters, AdamOptions o = {},
       Where at = Where::current())
      : Adam(p, std::move(name), std::move(parameters), o, false, at) {}
  void step(const Tensors& gradients, Where = Where::current()) const;

 protected:
  Adam(Program&, std::string name, Variables parameters, AdamOptions, bool is_decoupled, Where);

 private:
  AdamOptions options_;
  bool is_decoupled_;
  Variable count_;            // NAME.step, f32
  Variables first_, second_;  // NAME.PARAMETER.exp_avg and exp_avg_sq
};

// The decay, times the rate, is taken from the parameter itself (Loshchilov and Hutter, "Decoupled
// weight decay regularization", 2019).
struct AdamWOptions {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 1e-2;
};
struct AdamW : Adam {
  AdamW(Program& p, std::string name, Variables parameters, AdamWOptions o = {},
        Where at = Where::current())
      : Adam(p, std::move(name), std::move(parameters),
             {o.rate, o.beta1, o.beta2, o.epsilon, o.weight_decay}, true, at) {}
};

// Running means of parameters: states NAME.PARAMETER of group "model", which begin as the
// parameters do.
class Ema {
 public:
  Ema(Program&, std::string name, Variables parameters, double decay, Where = Where::current());
  // Each mean becomes mean * decay + parameter * (1 - decay).
  void update(Where = Where::current()) const;
  // f(), in which reading a parameter gives its mean.
  template <class F>
  auto use(F&& f, Where at = Where::current()) const {
    return with_values(parameters_, values(means_, at), std::forward<F>(f), at);
  }
  const Variables& means() const { return means_; }

 private:
  Variables parameters_, means_;
  double decay_;
};

// The gradients times min(1, most / norm), for the norm of all together. Returns the norm.
Tensor clip_grad_norm(Tensors& gradients, double most, Where = Where::current());

}  // namespace hone::nn
