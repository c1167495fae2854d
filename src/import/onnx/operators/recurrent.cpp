// RNN, GRU and LSTM with all options, and com.microsoft's 8-bit LSTM. An LSTM without options is an
// operation of its own.
#include <algorithm>
#include <array>
#include <functional>

#include "base/amount.h"
#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/node/steps.h"
#include "import/onnx/operators/list.h"

namespace hone::onnx {

namespace {

using Activation = std::function<Value(Value)>;

// The parameters of one direction's cells besides their states. Values belong to the graph in which
// the cell is built, so they are passed separately.
struct Cell {
  std::vector<Activation> f;
  double clip = 0;
  bool linear_before_reset = false, input_forget = false;
  bool has_peepholes = false;
  bool is_plain = false;   // no options, default activations
  bool in_8_bits = false;  // the state is rounded before the recurrence
};

// One step: takes gates of the current input [b, gates * h], states, constants (recurrent weights,
// then those of the kind of cell). Returns the new states; the first is the output.
using CellStep = Values (*)(const Cell&, Value gates, const Values& states,
                            const Values& constants);

Value clipped(const Cell& cell, Value x) {
  if (cell.clip <= 0) return x;
  return ops::minimum(ops::maximum(x, constant_like(x, -cell.clip)), constant_like(x, cell.clip));
}

Values parts_of(Value x, int count) {
  const int last = x.rank() - 1;
  const Dim size = floor_div(x.shape()[last], count);
  return split_axis(x, last, Dims(static_cast<std::size_t>(count), size));
}

// x rounded to 8 bits, with its range, widened to include 0, mapped to 0 .. 255.
Value in_8_bits(Value x) {
  const Axes all = all_axes(x.rank());
  const auto spread = [&](Value v) { return broadcast_to(v, x.shape()); };
  Value low = reduce_axes(ops::reduce_min, x, all), high = reduce_axes(ops::reduce_max, x, all);
  Value none = constant_like(low, 0), most = constant_like(low, 255);
  low = ops::minimum(low, none);
  Value scale = (ops::maximum(high, none) - low) / 255.0;
  scale = ops::select(Values{ops::eq(scale, none), constant_like(scale, 1), scale});
  Value zero = ops::minimum(ops::maximum(ops::round(-low / scale), none), most);
  Value number = ops::round(x / spread(scale)) + spread(zero);
  number = ops::minimum(ops::maximum(number, spread(none)), spread(most));
  return (number - spread(zero)) * spread(scale);
}

Value recurrent(Value h, Value weights) { return dot_general(h, weights, {}, {{1, 1}}); }

Values rnn_step(const Cell& cell, Value gates, const Values& states, const Values& constants) {
  return {cell.f[0](clipped(cell, gates + recurrent(states[0], constants[0])))};
}

// Gates z, r, h. Constants: weights [3h, h], the bias of the last gate [h]. One contraction of the
// state computes as many gates as possible.
Values gru_step(const Cell& cell, Value gates, const Values& states, const Values& constants) {
  Value h = states[0];
  const Dim size = h.shape()[1], two = size * Dim(2);
  Values x = split_axis(gates, 1, Dims{two, size});
  Value bias = broadcast_to(constants[1], h.shape()), last;
  Values sums;
  if (cell.linear_before_reset) {
    sums = split_axis(recurrent(h, constants[0]), 1, Dims{two, size});
  } else {
    Values r = split_axis(constants[0], 0, Dims{two, size});
    sums = {recurrent(h, r[0])};
    last = r[1];
  }
  Values both = parts_of(x[0] + sums[0], 2);
  Value update = cell.f[0](clipped(cell, both[0]));
  Value reset = cell.f[0](clipped(cell, both[1]));
  Value inner = last ? recurrent(reset * h, last) + bias : reset * (sums[1] + bias);
  Value next = cell.f[1](clipped(cell, x[1] + inner));
  return {(1.0 - update) * next + update * h};
}

// Gates i, o, f, c. Constants: weights [4h, h], and peepholes of i, o, f [3h] if present.
Values lstm_step(const Cell& cell, Value gates, const Values& states, const Values& constants) {
  Value h = states[0], c = states[1];
  if (cell.in_8_bits) h = in_8_bits(h);
  Values x = parts_of(gates + recurrent(h, constants[0]), 4), p;
  if (cell.has_peepholes)
    for (Value v : parts_of(constants[1], 3)) p.push_back(broadcast_to(v, c.shape()));
  auto peeped = [&](Value gate, std::size_t i, Value state) {
    return clipped(cell, p.empty() ? gate : gate + p[i] * state);
  };
  Value in = cell.f[0](peeped(x[0], 0, c));
  Value keep = cell.input_forget ? 1.0 - in : cell.f[0](peeped(x[2], 2, c));
  Value next = keep * c + in * cell.f[1](clipped(cell, x[3]));
  Value out = cell.f[0](peeped(x[1], 1, next));
  return {out * cell.f[2](next), next};
}

// Past its length a sequence keeps its state and returns 0. The last constant holds the lengths, if
// present.
Step with_lengths(const Cell& cell, CellStep step, bool has_lengths) {
  return [&cell, step, has_lengths](const Values& now, const Values& states,
                                    const Values& constants, Value time) -> Stepped {
    Values next = step(cell, now[0], states, constants);
    if (!has_lengths) return {next[0], next};
    Value lengths = constants.back();
    Value on = ops::lt(broadcast_to(time, lengths.shape()), lengths);
    on = broadcast_to(unsqueeze(on, {1}), states[0].shape());
    Value y = ops::select(Values{on, next[0], constant_like(next[0], 0)});
    for (std::size_t i = 0; i < next.size(); ++i)
      next[i] = ops::select(Values{on, next[i], states[i]});
    return {y, next};
  };
}

// ==== attributes

// Activation parameters are listed in order, for activations that have them.
class ActivationNumbers {
 public:
  ActivationNumbers(NodeContext& c)
      : alpha_(c.reals("activation_alpha").value_or(std::vector<float>())),
        beta_(c.reals("activation_beta").value_or(std::vector<float>())) {}
  double alpha(double fallback) { return next(alpha_, at_alpha_, fallback); }
  double beta(double fallback) { return next(beta_, at_beta_, fallback); }

 private:
  static double next(const std::vector<float>& list, std::size_t& at, double fallback) {
    return at < list.size() ? double{list[at++]} : fallback;
  }
  std::vector<float> alpha_, beta_;
  std::size_t at_alpha_ = 0, at_beta_ = 0;
};

Value zero_like(Value x) { return constant_like(x, 0); }
Value where_positive(Value x, Value yes, Value no) {
  return ops::select(Values{ops::lt(zero_like(x), x), yes, no});
}

Activation activation(NodeContext& c, std::string_view name, ActivationNumbers& numbers) {
  if (name == "Sigmoid") return [](Value x) { return ops::sigmoid(x); };
  if (name == "Tanh") return [](Value x) { return ops::tanh(x); };
  if (name == "Relu") return [](Value x) { return ops::relu(x); };
  if (name == "Softsign") return [](Value x) { return x / (ops::abs(x) + 1.0); };
  if (name == "Softplus") return [](Value x) { return ops::softplus(x); };
  if (name == "LeakyRelu") {
    const double a = numbers.alpha(0.01);
    return [a](Value x) { return ops::leaky_relu(x, {{"alpha", a}}); };
  }
  if (name == "Elu") {
    const double a = numbers.alpha(1);
    return [a](Value x) {
      return where_positive(x, x, (ops::exp(ops::minimum(x, zero_like(x))) - 1.0) * a);
    };
  }
  if (name == "ThresholdedRelu") {
    const double a = numbers.alpha(1);
    return [a](Value x) {
      return ops::select(Values{ops::lt(constant_like(x, a), x), x, zero_like(x)});
    };
  }
  const bool is_affine = name == "Affine", is_scaled = name == "ScaledTanh",
             is_hard = name == "HardSigmoid";
  if (!is_affine && !is_scaled && !is_hard)
    c.unsupported(cat("activation '", name, "' is not supported"));
  const double a = numbers.alpha(is_hard ? 0.2 : 1), b = numbers.beta(is_hard     ? 0.5
                                                                      : is_scaled ? 1
                                                                                  : 0);
  if (is_affine) return [a, b](Value x) { return x * a + b; };
  if (is_scaled) return [a, b](Value x) { return ops::tanh(x * b) * a; };
  return [a, b](Value x) {
    return ops::minimum(ops::maximum(x * a + b, zero_like(x)), constant_like(x, 1));
  };
}

// The kinds of cell: number of gates and default activations.
struct Kind {
  CellStep step;
  int gates;
  std::vector<std::string_view> activations;
  bool has_cell_state = false;
  bool in_8_bits = false;
};

std::vector<Cell> cells(NodeContext& c, const Kind& kind, int directions) {
  const std::size_t each = kind.activations.size();
  std::vector<std::string_view> names;
  for (int d = 0; d < directions; ++d)
    names.insert(names.end(), kind.activations.begin(), kind.activations.end());
  if (auto given = c.texts("activations")) {
    if (given->size() != names.size())
      c.fail(cat("attribute 'activations' has ", amount(given->size(), "entry", "entries"),
                 ", expected ", names.size()));
    names = *given;
  }
  ActivationNumbers numbers(c);
  const double clip = c.real("clip", 0);
  const bool linear = c.flag("linear_before_reset"), forget = c.flag("input_forget");
  std::vector<Cell> out(static_cast<std::size_t>(directions));
  for (std::size_t d = 0; d < out.size(); ++d) {
    for (std::size_t i = 0; i < each; ++i)
      out[d].f.push_back(activation(c, names[d * each + i], numbers));
    out[d].clip = clip;
    out[d].linear_before_reset = linear;
    out[d].input_forget = forget;
    out[d].has_peepholes = kind.has_cell_state && c.has(7);
    out[d].in_8_bits = kind.in_8_bits;
    out[d].is_plain = !kind.in_8_bits && clip <= 0 && !forget && !out[d].has_peepholes &&
                      std::equal(kind.activations.begin(), kind.activations.end(),
                                 names.begin() + static_cast<std::ptrdiff_t>(d * each));
  }
  return out;
}

// ==== operands

// Time first: [steps, b, i], states [directions, b, h]. Sizes that must be equal are one Dim, so
// that what a loop carries keeps its type.
struct Sources {
  Value x = {}, w = {},
        r = {};  // weights [directions, gates * h, i] and [directions, gates * h, h]
  Value bias = {}, peepholes = {}, lengths = {};
  Values states = {};
  Dim hidden = {};
};

// Integer weights [directions, i, gates * h] as reals, with the usual axis order. There is one
// scale and zero point per direction, or per column of it.
Value weights_of_8_bits(NodeContext& c, std::size_t weights, std::size_t scale) {
  Value w = c.in(weights);
  const auto fit = [&](Value v) {
    return broadcast_to(unsqueeze(v, v.rank() == 1 ? Axes{1, 2} : Axes{1}), w.shape());
  };
  Value number = cast_to(w, DType::f32);
  if (c.has(scale + 1)) number = number - fit(cast_to(c.in(scale + 1), DType::f32));
  return transpose_by(number * fit(c.in(scale)), Axes{0, 2, 1});
}

void check_ranks(NodeContext& c) {
  if (c.in(0).rank() != 3 || c.in(1).rank() != 3 || c.in(2).rank() != 3)
    c.fail(cat("inputs 'X', 'W' and 'R' are ", c.in(0).type(), ", ", c.in(1).type(), " and ",
               c.in(2).type(), ", expected three axes each"));
  const auto expect = [&](std::size_t i, std::string_view name, int rank, std::string_view axes) {
    if (c.has(i) && c.in(i).rank() != rank) c.bad_input(i, name, axes);
  };
  expect(3, "B", 2, "two axes");
  expect(4, "sequence_lens", 1, "one axis");
  expect(5, "initial_h", 3, "three axes");
}

void check_cell_ranks(NodeContext& c) {
  if (c.has(6) && c.in(6).rank() != 3) c.bad_input(6, "initial_c", "three axes");
  if (c.has(7) && c.in(7).rank() != 2) c.bad_input(7, "P", "two axes");
}

// The size of the batch and of the state, from all operands that have it.
Dim batch_of(NodeContext& c, const Value& x, const Values& states) {
  std::vector<Dim> all = {x.shape()[1]};
  if (c.has(4)) all.push_back(c.in(4).shape()[0]);
  for (const Value& v : states) all.push_back(v.shape()[1]);
  return settled(all);
}

Dim hidden_of(NodeContext& c, const Value& r, const Values& states) {
  std::vector<Dim> all = {r.shape()[2]};
  for (const Value& v : states) all.push_back(v.shape()[2]);
  const Dim hidden = settled(all);
  if (!c.has_attribute("hidden_size")) return hidden;
  const std::int64_t given = c.integer("hidden_size", 0);
  if (prove_equal(hidden, given) == false)
    c.bad_attribute("hidden_size", given, cat(hidden, ", as in the weights"));
  return given;
}

Sources sources(NodeContext& c, const Kind& kind, int directions, bool batch_first) {
  check_ranks(c);
  if (kind.has_cell_state) check_cell_ranks(c);
  Sources s{.x = c.in(0), .w = c.in(1), .r = c.in(2)};
  if (kind.in_8_bits) {
    s.x = in_8_bits(s.x);
    s.w = weights_of_8_bits(c, 1, 8);
    s.r = weights_of_8_bits(c, 2, 10);
  }
  if (batch_first) s.x = transpose_by(s.x, Axes{1, 0, 2});
  const std::size_t count = kind.has_cell_state ? 2 : 1;
  Values given;
  for (std::size_t i = 5; i < 5 + count; ++i)
    if (c.has(i)) given.push_back(batch_first ? transpose_by(c.in(i), Axes{1, 0, 2}) : c.in(i));
  const Dim batch = batch_of(c, s.x, given), inputs = s.w.shape()[2];
  s.hidden = hidden_of(c, s.r, given);
  const Dim gates = s.hidden * Dim(kind.gates);
  s.x = with_sizes(s.x, {s.x.shape()[0], batch, settled(std::array{s.x.shape()[2], inputs})},
                   "input 'X'");
  s.w = with_sizes(s.w, {directions, gates, s.x.shape()[2]}, "input 'W'");
  s.r = with_sizes(s.r, {directions, gates, s.hidden}, "input 'R'");
  if (c.has(3)) s.bias = with_sizes(c.in(3), {directions, gates * Dim(2)}, "input 'B'");
  if (c.has(4))
    s.lengths = with_sizes(cast_to(c.in(4), DType::i64), {batch}, "input 'sequence_lens'");
  if (kind.has_cell_state && c.has(7))
    s.peepholes = with_sizes(c.in(7), {directions, s.hidden * Dim(3)}, "input 'P'");
  const Dims state = {directions, batch, s.hidden};
  auto next = given.begin();
  for (std::size_t i = 5; i < 5 + count; ++i)
    s.states.push_back(
        c.has(i) ? with_sizes(*next++, state, i == 5 ? "input 'initial_h'" : "input 'initial_c'")
                 : filled(c.graph(), s.x.dtype(), Shape(state), 0));
  return s;
}

// Biases of the input gates and of the recurrence, [gates * h] each.
std::pair<Value, Value> biases(const Sources& s, int d, const Dim& size) {
  if (!s.bias) {
    Value none = filled(s.x.graph(), s.x.dtype(), {size}, 0);
    return {none, none};
  }
  Value both = take_axis(s.bias, 0, d);
  return {slice_axis(both, 0, 0, size), slice_axis(both, 0, size, size)};
}

Stepped one_direction(const Kind& kind, const Cell& cell, const Sources& s, int d, bool reverse) {
  const Dim size = s.hidden * Dim(kind.gates);
  Value w = take_axis(s.w, 0, d), r = take_axis(s.r, 0, d);
  auto [input_bias, bias] = biases(s, d, size);
  Values constants = {r};
  if (kind.step == gru_step) {
    // The recurrence bias of the last gate is inside the product with the reset gate.
    const Dim outer = s.hidden * Dim(2);
    constants.push_back(slice_axis(bias, 0, outer, s.hidden));
    Value rest = slice_axis(bias, 0, 0, outer);
    bias = concat_values(Values{rest, filled(w.graph(), w.dtype(), {s.hidden}, 0)}, 0);
  }
  if (cell.has_peepholes) constants.push_back(take_axis(s.peepholes, 0, d));
  Value gates = dot_general(s.x, w, {}, {{2, 1}});
  gates = gates + broadcast_to(input_bias + bias, gates.shape());
  if (s.lengths) constants.push_back(s.lengths);
  Values states;
  for (const Value& v : s.states) states.push_back(take_axis(v, 0, d));
  if (!kind.has_cell_state || !cell.is_plain)
    return over_time(with_lengths(cell, kind.step, bool{s.lengths}), {gates}, states, constants,
                     reverse);
  Values operands = {s.x, w, r, input_bias + bias, states[0], states[1]};
  if (s.lengths) operands.push_back(s.lengths);
  Value made = ops::lstm(operands, {{"reverse", std::int64_t{reverse}}});
  return {made, {made.result(1), made.result(2)}};
}

Values recurrent_import(NodeContext& c, const Kind& kind) {
  c.ignore("output_sequence");  // opset 1: implied by the outputs used
  std::string_view way = c.text("direction", "forward");
  if (way != "forward" && way != "reverse" && way != "bidirectional")
    c.bad_attribute("direction", way, "forward, reverse or bidirectional");
  const int directions = way == "bidirectional" ? 2 : 1;
  const bool batch_first = c.flag("layout");
  const std::vector<Cell> all = cells(c, kind, directions);
  const Sources s = sources(c, kind, directions, batch_first);
  Values y;
  std::vector<Values> last(s.states.size());
  for (int d = 0; d < directions; ++d) {
    Stepped made =
        one_direction(kind, all[static_cast<std::size_t>(d)], s, d, way == "reverse" || d == 1);
    y.push_back(unsqueeze(made.y, {1}));
    for (std::size_t i = 0; i < last.size(); ++i) last[i].push_back(unsqueeze(made.states[i], {0}));
  }
  Values out = {concat_values(y, 1)};  // [steps, directions, b, h]
  if (batch_first) out[0] = transpose_by(out[0], Axes{2, 0, 1, 3});
  for (const Values& v : last) {
    Value state = concat_values(v, 0);
    out.push_back(batch_first ? transpose_by(state, Axes{1, 0, 2}) : state);
  }
  return out;
}

Values rnn(NodeContext& c) { return recurrent_import(c, {rnn_step, 1, {"Tanh"}}); }
Values gru(NodeContext& c) { return recurrent_import(c, {gru_step, 3, {"Sigmoid", "Tanh"}}); }
Values lstm(NodeContext& c) {
  return recurrent_import(c, {lstm_step, 4, {"Sigmoid", "Tanh", "Tanh"}, true});
}

Values lstm_of_8_bits(NodeContext& c) {
  return recurrent_import(c, {lstm_step, 4, {"Sigmoid", "Tanh", "Tanh"}, true, true});
}

constexpr ImportEntry recurrent_table[] = {
    {"RNN", rnn},
    {"GRU", gru},
    {"LSTM", lstm},
    {.op = "DynamicQuantizeLSTM", .import = lstm_of_8_bits, .domain = "com.microsoft"},
};

}  // namespace

std::span<const ImportEntry> recurrent_imports() { return recurrent_table; }

}  // namespace hone::onnx
