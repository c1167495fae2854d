#include "nn/optimizers.h"

#include <algorithm>

#include "base/error.h"
#include "formulas/optimizers.h"
#include "ops/common.h"
#include "tensor/functions.h"
#include "tensor/trace.h"

namespace hone::nn {

Optimizer::Optimizer(Program& p, std::string name, Variables parameters, double rate, Where at)
    : name_(std::move(name)), parameters_(std::move(parameters)) {
  located(at, [&] {
    if (parameters_.empty())
      throw UserError("optimizer '", name_, "' has no parameters, expected at least one");
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (std::find(parameters_.begin(), parameters_.begin() + static_cast<std::ptrdiff_t>(i),
                    parameters_[i]) != parameters_.begin() + static_cast<std::ptrdiff_t>(i))
        throw UserError("optimizer '", name_, "': parameter '", parameters_[i].name(),
                        "' is given twice");
    rate_ = p.variable(name_ + ".rate", f32({}), rate, "optimizer");
  });
}

Variables Optimizer::per_parameter(Program& p, const std::string& what, Where at) const {
  Variables out;
  for (const Variable& v : parameters_)
    out.push_back(p.variable(name_ + "." + v.name() + "." + what, v.type(), 0, "optimizer", at));
  return out;
}

void Optimizer::expect_one_each(const Tensors& gradients) const {
  if (gradients.size() != parameters_.size())
    throw UserError("optimizer '", name_, "': ", gradients.size(), " gradients for ",
                    parameters_.size(), " parameters, expected one for each");
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (!(Trace::type_of(gradients[i]) == parameters_[i].type()))
      throw UserError("optimizer '", name_, "': the gradient of '", parameters_[i].name(), "' is ",
                      gradients[i], ", expected ", parameters_[i].type());
}

SGD::SGD(Program& p, std::string name, Variables parameters, SgdOptions o, Where at)
    : Optimizer(p, std::move(name), std::move(parameters), o.rate, at), options_(o) {
  if (o.momentum != 0) velocity_ = per_parameter(p, "momentum_buffer", at);
}

void SGD::step(const Tensors& gradients, Where at) const {
  located(at, [&] {
    expect_one_each(gradients);
    Trace& t = Trace::current();
    const Value rate = t.value(rate_);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const Value x = t.value(parameters_[i]);
      Value way = t.value(gradients[i]);
      if (options_.weight_decay != 0) way = way + x * options_.weight_decay;
      if (!velocity_.empty()) {
        const formulas::Velocity v = formulas::next_velocity(
            t.value(velocity_[i]), way, options_.momentum, way, options_.nesterov);
        velocity_[i].set(t.tensor(v.next));
        way = v.direction;
      }
      parameters_[i].set(t.tensor(x - cast_to(rate, x.dtype()) * way));
    }
  });
}

Adam::Adam(Program& p, std::string name, Variables parameters, AdamOptions o, bool is_decoupled,
           Where at)
    : Optimizer(p, std::move(name), std::move(parameters), o.rate, at),
      options_(o),
      is_decoupled_(is_decoupled) {
  count_ = p.variable(name_ + ".step", f32({}), 0, "optimizer", at);
  first_ = per_parameter(p, "exp_avg", at);
  second_ = per_parameter(p, "exp_avg_sq", at);
}

void Adam::step(const Tensors& gradients, Where at) const {
  located(at, [&] {
    expect_one_each(gradients);
    Trace& t = Trace::current();
    const Value rate = t.value(rate_), count = t.value(count_) + 1.0;
    count_.set(t.tensor(count));
    const Value c1 = formulas::bias_correction(count, options_.beta1),
                c2 = formulas::bias_correction(count, options_.beta2);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const Value x = t.value(parameters_[i]), r = cast_to(rate, x.dtype());
      Value g = t.value(gradients[i]);
      const bool decays = options_.weight_decay != 0;
      if (decays && !is_decoupled_) g = g + x * options_.weight_decay;
      const formulas::Moments m = formulas::next_moments({t.value(first_[i]), t.value(second_[i])},
                                                         g, options_.beta1, options_.beta2);
      first_[i].set(t.tensor(m.first));
      second_[i].set(t.tensor(m.second));
      Value change = formulas::adam_change(
          {m.first / cast_to(c1, x.dtype()), m.second / cast_to(c2, x.dtype())}, options_.epsilon);
      if (decays && is_decoupled_) change = change + x * options_.weight_decay;
      parameters_[i].set(t.tensor(x - r * change));
    }
  });
}

Ema::Ema(Program& p, std::string name, Variables parameters, double decay, Where at)
    : parameters_(std::move(parameters)), decay_(decay) {
  located(at, [&] {
    if (!(decay >= 0 && decay <= 1))
      throw UserError("Ema '", name, "': the decay is ", decay, ", expected from 0 to 1");
    const ProgramGraph now = p.graph();
    for (const Variable& v : parameters_) {
      const auto it = std::ranges::find(now.states, v.name(), &StateVariable::name);
      if (it == now.states.end())
        throw UserError("Ema '", name, "': state '", v.name(), "' belongs to another program");
      means_.push_back(p.variable(name + "." + v.name(), v.type(), *it->start, it->group));
    }
  });
}

void Ema::update(Where at) const {
  located(at, [&] {
    for (std::size_t i = 0; i < means_.size(); ++i)
      means_[i].set(means_[i].value() * decay_ + parameters_[i].value() * (1 - decay_));
  });
}

Tensor clip_grad_norm(Tensors& gradients, double most, Where at) {
  return located(at, [&] {
    if (gradients.empty()) throw UserError("clip_grad_norm: there are no gradients");
    Tensor total = sum(square(cast(gradients[0], DType::f32)));
    for (std::size_t i = 1; i < gradients.size(); ++i)
      total = total + sum(square(cast(gradients[i], DType::f32)));
    const Tensor length = sqrt(total);
    const Tensor factor = minimum(most / (length + 1e-6), 1);
    for (Tensor& g : gradients) g = g * cast(factor, g.dtype());
    return length;
  });
}

}  // namespace hone::nn
