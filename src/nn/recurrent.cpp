#include "nn/recurrent.h"

#include <cmath>

#include "base/error.h"
#include "tensor/control.h"
#include "tensor/functions.h"
#include "tensor/network.h"
#include "tensor/trace.h"

namespace hone::nn {

namespace {

void expect_least(const std::string& module, const char* what, std::int64_t n) {
  if (n < 1) throw UserError("module '", module, "': .", what, " is ", n, ", expected at least 1");
}

Tensor value_or_none(const Variable& v, bool is_there) { return is_there ? v.value() : Tensor(); }

// The recurrent part of the gates.
Tensor from_state(const Tensor& h, const Tensor& hh, const Tensor& bias) {
  const Tensor y = matmul(h, hh);
  return bias.is_empty() ? y : y + bias;
}

}  // namespace

Recurrent::Recurrent(Module& parent, std::string name, const RecurrentOptions& o,
                     std::int64_t gates, Where at)
    : Module(parent, std::move(name), at), options_(o) {
  located(at, [&] {
    expect_least(this->name(), "in", o.in);
    expect_least(this->name(), "hidden", o.hidden);
    expect_least(this->name(), "layers", o.layers);
  });
  const double bound = 1 / std::sqrt(static_cast<double>(o.hidden));
  const std::int64_t directions = o.bidirectional ? 2 : 1;
  for (std::int64_t layer = 0; layer < o.layers; ++layer)
    for (std::int64_t direction = 0; direction < directions; ++direction) {
      const std::string which = cat("_l", layer, direction == 1 ? "_reverse" : "");
      const std::int64_t in = layer == 0 ? o.in : o.hidden * directions;
      const auto made = [&](const char* what, Dims sizes) {
        return parameter(cat(what, which), f32(Shape(std::move(sizes))),
                         Start::uniform(-bound, bound), at);
      };
      Weights w;
      w.ih = made("weight_ih", {gates * o.hidden, in});
      w.hh = made("weight_hh", {gates * o.hidden, o.hidden});
      if (o.bias) {
        w.bias_ih = made("bias_ih", {gates * o.hidden});
        w.bias_hh = made("bias_hh", {gates * o.hidden});
      }
      weights.push_back(w);
    }
}

// x is [steps, n, in].
Tensor Recurrent::first_state(const Tensor& given, const Tensor& x, Where at) const {
  const Dims sizes = {static_cast<std::int64_t>(weights.size()), x.size(1), options_.hidden};
  if (given.is_empty()) return zeros(Type(x.dtype(), Shape(sizes)), at);
  bool fits = given.rank() == 3;
  for (int i = 0; fits && i < 3; ++i)
    fits = prove_equal(given.size(i), sizes[static_cast<std::size_t>(i)]) != false;
  if (!fits)
    throw UserError("module '", name(), "': a state is ", given, ", expected ", Shape(sizes),
                    ": [layers * directions, n, hidden]");
  return given;
}

Recurrent::Ran Recurrent::run(const Tensor& given, const std::vector<Tensor>& first,
                              Ran (*cell)(const Cell&), Where at) const {
  return located(at, [&]() -> Ran {
    if (given.rank() != 3 || prove_equal(given.size(2), Dim(options_.in)) == false)
      throw UserError("module '", name(), "': x is ", given, ", expected rank 3: [",
                      options_.batch_first ? "n, steps" : "steps, n", ", ", options_.in, "]");
    Tensor x = options_.batch_first ? transpose(given, 0, 1) : given;
    std::vector<Tensor> states;
    for (const Tensor& s : first) states.push_back(first_state(s, x, at));
    std::vector<Tensors> last(states.size());
    const std::size_t directions = options_.bidirectional ? 2 : 1;
    for (std::size_t layer = 0; layer * directions < weights.size(); ++layer) {
      if (layer > 0) x = dropout(x, options_.dropout, at);
      Tensors outputs;
      for (std::size_t k = 0; k < directions; ++k) {
        const std::size_t place = layer * directions + k;
        const Weights& w = weights[place];
        Cell c{.ih = linear(x, w.ih, value_or_none(w.bias_ih, options_.bias), at),
               .hh = transpose(w.hh.value()),
               .bias_hh = value_or_none(w.bias_hh, options_.bias),
               .state = {},
               .reverse = k == 1};
        for (const Tensor& s : states)
          c.state.push_back(select(s, 0, static_cast<std::int64_t>(place)));
        const Ran ran = cell(c);
        outputs.push_back(ran.output);
        for (std::size_t i = 0; i < last.size(); ++i) last[i].push_back(ran.state[i]);
      }
      x = directions == 1 ? outputs[0] : concat(outputs, 2);
    }
    Ran out{options_.batch_first ? transpose(x, 0, 1) : x, {}};
    for (const Tensors& s : last) out.state.push_back(stack(s));
    return out;
  });
}

LSTM::LSTM(Module& parent, std::string name, const RecurrentOptions& o, Where at)
    : Recurrent(parent, std::move(name), o, 4, at) {}

LSTM::Result LSTM::operator()(const Tensor& x, Where at) const { return (*this)(x, {}, {}, at); }
LSTM::Result LSTM::operator()(const Tensor& x, const Tensor& h, const Tensor& c, Where at) const {
  const auto cell = [](const Cell& by) -> Ran {
    const auto step = [&](const Tensors& state, const Tensors& ih) -> Stepped {
      const Tensors gates = chunk(ih[0] + from_state(state[0], by.hh, by.bias_hh), 4, -1);
      const Tensor next = sigmoid(gates[1]) * state[1] + sigmoid(gates[0]) * tanh(gates[2]);
      const Tensor y = sigmoid(gates[3]) * tanh(next);
      return {{y, next}, {y}};
    };
    const Scanned s = scan(by.state, {by.ih}, step, {.reverse = by.reverse});
    return {s.kept[0], s.carried};
  };
  const Ran ran = run(x, {h, c}, cell, at);
  return {ran.output, ran.state[0], ran.state[1]};
}

GRU::GRU(Module& parent, std::string name, const RecurrentOptions& o, Where at)
    : Recurrent(parent, std::move(name), o, 3, at) {}

GRU::Result GRU::operator()(const Tensor& x, Where at) const { return (*this)(x, {}, at); }
GRU::Result GRU::operator()(const Tensor& x, const Tensor& h, Where at) const {
  const auto cell = [](const Cell& by) -> Ran {
    const auto step = [&](const Tensors& state, const Tensors& ih) -> Stepped {
      const Tensors in = chunk(ih[0], 3, -1),
                    back = chunk(from_state(state[0], by.hh, by.bias_hh), 3, -1);
      const Tensor reset = sigmoid(in[0] + back[0]), update = sigmoid(in[1] + back[1]);
      const Tensor fresh = tanh(in[2] + reset * back[2]);
      const Tensor y = fresh + update * (state[0] - fresh);
      return {{y}, {y}};
    };
    const Scanned s = scan(by.state, {by.ih}, step, {.reverse = by.reverse});
    return {s.kept[0], s.carried};
  };
  const Ran ran = run(x, {h}, cell, at);
  return {ran.output, ran.state[0]};
}

}  // namespace hone::nn
