// Recurrent cells and sequences. Gates are in ONNX order: input, output, forget, cell.
#include <algorithm>
#include <cmath>

#include "ir/function.h"
#include "ops/check.h"
#include "ops/eval.h"
#include "ops/samples.h"

namespace hone {

namespace {

constexpr std::int64_t most_unrolled = 16;

void expect_shape(const Call& c, std::size_t operand, const Dims& dims) {
  expect_rank(c, operand, static_cast<int>(dims.size()));
  for (std::size_t i = 0; i < dims.size(); ++i)
    equal_sizes(c, dims[i], c.shape(operand).dims[i], "sizes of operand ", operand, " at axis ", i);
}

// One Dim for sizes that must be equal, a number if one of them is: carried values keep their
// types.
struct StateSizes {
  Dim batch, hidden;
};

// From the states, operands `first` and the next, each [batch, hidden].
StateSizes state_sizes(const Call& c, std::size_t first) {
  expect_rank(c, first, 2);
  expect_rank(c, first + 1, 2);
  const Shape &h = c.shape(first), &cell = c.shape(first + 1);
  return {equal_sizes(c, h[0], cell[0], "batch sizes of the states"),
          equal_sizes(c, h[1], cell[1], "sizes of the states")};
}

std::vector<Type> infer_cell(const Call& c) {
  expect_operands(c, 4);
  expect_dtype(c, 0, Accept::real);
  expect_same_dtype(c, 0, 4);
  expect_rank(c, 0, 2);
  StateSizes s = state_sizes(c, 1);
  s.batch = equal_sizes(c, c.shape(0)[0], s.batch, "batch sizes of operands 0 and 1");
  expect_shape(c, 0, {s.batch, s.hidden * Dim(4)});
  expect_shape(c, 3, {s.hidden * Dim(4), s.hidden});
  const Type state(c.type(1).dtype, {s.batch, s.hidden});
  return {state, state};
}

Values expand_cell(const Call& c) {
  const Dim &batch = c.results[0].shape[0], &hidden = c.results[0].shape[1], all = hidden * Dim(4);
  Value h = reshape_to(c.operands[1], {batch, hidden}),
        cell = reshape_to(c.operands[2], {batch, hidden}),
        weights = reshape_to(c.operands[3], {all, hidden});
  Value gates = reshape_to(c.operands[0], {batch, all}) + dot_general(h, weights, {}, {{1, 1}});
  const Dim sizes[] = {hidden, hidden, hidden, hidden};
  Values part = split_axis(gates, 1, sizes);
  cell = ops::sigmoid(part[2]) * cell + ops::sigmoid(part[0]) * ops::tanh(part[3]);
  return {ops::sigmoid(part[1]) * ops::tanh(cell), cell};
}

// Reference for one step of one sequence: takes the gates of x, updates h and c.
void cell_step(const double* gates, const Wide& r, double* h, double* c, std::size_t hidden) {
  auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  std::vector<double> g(gates, gates + 4 * hidden), next(hidden);
  for (std::size_t i = 0; i < 4 * hidden; ++i)
    for (std::size_t k = 0; k < hidden; ++k) g[i] += r.reals[i * hidden + k] * h[k];
  for (std::size_t i = 0; i < hidden; ++i) {
    c[i] = sigmoid(g[2 * hidden + i]) * c[i] + sigmoid(g[i]) * std::tanh(g[3 * hidden + i]);
    next[i] = sigmoid(g[hidden + i]) * std::tanh(c[i]);
  }
  std::copy(next.begin(), next.end(), h);
}

std::vector<Wide> eval_cell(const Evaluation& e) {
  Wide h = *e.inputs[1], c = *e.inputs[2];
  auto batch = static_cast<std::size_t>(h.dims[0]), hidden = static_cast<std::size_t>(h.dims[1]);
  for (std::size_t b = 0; b < batch; ++b)
    cell_step(e.inputs[0]->reals.data() + b * 4 * hidden, *e.inputs[3], h.reals.data() + b * hidden,
              c.reals.data() + b * hidden, hidden);
  return {std::move(h), std::move(c)};
}

std::vector<Type> infer_lstm(const Call& c) {
  expect_operands(c, 6, 7);
  expect_dtype(c, 0, Accept::real);
  expect_same_dtype(c, 0, 6);
  expect_rank(c, 0, 3);
  integer_attr(c, "reverse", 0);
  StateSizes s = state_sizes(c, 4);
  s.batch = equal_sizes(c, c.shape(0)[1], s.batch, "batch sizes of operands 0 and 4");
  if (c.operands.size() > 6) {
    expect_dtype(c, 6, Accept::integer);
    expect_rank(c, 6, 1);
    s.batch = equal_sizes(c, c.shape(6)[0], s.batch, "batch sizes of operands 6 and 0");
  }
  const Dim gates = s.hidden * Dim(4);
  expect_shape(c, 1, {gates, c.shape(0)[2]});
  expect_shape(c, 2, {gates, s.hidden});
  expect_shape(c, 3, {gates});
  const Type state(c.type(0).dtype, {s.batch, s.hidden});
  return {Type(state.dtype, {c.shape(0)[0], s.batch, s.hidden}), state, state};
}

struct Step {
  Value y, h, c;
};

// One time step. `length` (optional) ends each sequence of the batch: past it the state is
// unchanged and y is 0.
Step lstm_step(Value gates, Value h, Value c, Value r, Value length, Value time) {
  Value cell = ops::lstm_cell(gates, h, c, r);
  Step next{cell.result(0), cell.result(0), cell.result(1)};
  if (!length) return next;
  Value on = ops::lt(broadcast_to(time, length.shape()), cast_to(length, DType::i64));
  on = broadcast_to(unsqueeze(on, {1}), h.shape());
  return {ops::select(on, next.y, constant_like(h, 0)), ops::select(on, next.h, h),
          ops::select(on, next.c, c)};
}

Value time_value(Graph& graph, std::int64_t t) {
  return constant(graph, Array::scalar_int(t, DType::i64));
}

Values unrolled_lstm(const Call& c, Value gates, std::int64_t steps, bool reverse) {
  Value h = c.operands[4], cell = c.operands[5];
  Value length = c.operands.size() > 6 ? c.operands[6] : Value();
  Values ys(static_cast<std::size_t>(steps));
  for (std::int64_t i = 0; i < steps; ++i) {
    std::int64_t t = reverse ? steps - 1 - i : i;
    Step s =
        lstm_step(take_axis(gates, 0, t), h, cell, c.operands[2], length, time_value(c.graph, t));
    ys[static_cast<std::size_t>(t)] = unsqueeze(s.y, {0});
    h = s.h;
    cell = s.c;
  }
  return {concat_values(ys, 0), h, cell};
}

// Carried: count, h, c, y. Constant: gates, r, and the lengths if there are any.
enum : std::size_t { at_count, at_h, at_c, at_y, at_gates, at_r, at_length };

void add_params(Function& f, const Values& operands) {
  for (const Value& v : operands) f.add_param(v.type(), cat("p", f.params().size()));
}

FunctionRef lstm_condition(const Values& operands) {
  auto f = std::make_shared<Function>();
  add_params(*f, operands);
  Value steps = size_value(f->graph(), operands[at_gates].shape()[0], DType::i64);
  f->add_result(ops::lt(f->param(at_count), steps));
  return f;
}

FunctionRef lstm_body(const Values& operands, bool reverse) {
  auto f = std::make_shared<Function>();
  add_params(*f, operands);
  Graph& g = f->graph();
  Value count = f->param(at_count), gates = f->param(at_gates), h = f->param(at_h);
  Value time = count;
  if (reverse) time = size_value(g, gates.shape()[0], DType::i64) - integer_like(count, 1) - count;
  Value now = squeeze(slice_at(gates, 0, time), {0});
  Value length = operands.size() > at_length ? f->param(at_length) : Value();
  Step s = lstm_step(now, h, f->param(at_c), f->param(at_r), length, time);
  f->add_result(count + integer_like(count, 1));
  f->add_result(s.h);
  f->add_result(s.c);
  f->add_result(updated_at(f->param(at_y), unsqueeze(s.y, {0}), time));
  return f;
}

Values looped_lstm(const Call& c, Value gates, bool reverse) {
  Value y = broadcast_to(scalar(c.graph, 0, c.type(0).dtype), c.results[0].shape);
  Values operands = {time_value(c.graph, 0), c.operands[4], c.operands[5], y, gates, c.operands[2]};
  if (c.operands.size() > 6) operands.push_back(c.operands[6]);
  Value loop = ops::while_loop(
      operands, {{"condition", lstm_condition(operands)}, {"body", lstm_body(operands, reverse)}});
  return {loop.result(at_y), loop.result(at_h), loop.result(at_c)};
}

Values expand_lstm(const Call& call) {
  const Dims &y = call.results[0].shape.dims, &state = call.results[1].shape.dims;
  const Dim gate_count = state[1] * Dim(4);
  Values operands(call.operands.begin(), call.operands.end());
  operands[2] = reshape_to(operands[2], {gate_count, state[1]});
  for (std::size_t i : {4U, 5U}) operands[i] = reshape_to(operands[i], state);
  if (operands.size() > 6) operands[6] = reshape_to(operands[6], {state[0]});
  const Call c{call.op, operands, call.attrs, call.graph, call.results};
  Value gates = dot_general(operands[0], operands[1], {}, {{2, 1}});
  gates = reshape_to(gates, {y[0], y[1], gate_count});
  gates = gates + broadcast_to(operands[3], gates.shape());
  bool reverse = c.attrs.integer("reverse") != 0;
  std::optional<std::int64_t> steps = c.shape(0)[0].as_number();
  if (steps && *steps > 0 && *steps <= most_unrolled)
    return unrolled_lstm(c, gates, *steps, reverse);
  return looped_lstm(c, gates, reverse);
}

std::vector<Wide> eval_lstm(const Evaluation& e) {
  const Wide &x = *e.inputs[0], &w = *e.inputs[1];
  Wide y(x.dtype, e.result_dims(0)), h = *e.inputs[4], c = *e.inputs[5];
  std::int64_t steps = x.dims[0], batch = x.dims[1];
  auto inputs = static_cast<std::size_t>(x.dims[2]), hidden = static_cast<std::size_t>(h.dims[1]);
  for (std::int64_t i = 0; i < steps; ++i)
    for (std::int64_t b = 0; b < batch; ++b) {
      std::int64_t t = e.attrs.integer("reverse") ? steps - 1 - i : i;
      auto row = static_cast<std::size_t>(t * batch + b), state = static_cast<std::size_t>(b);
      if (e.inputs.size() > 6 && t >= e.inputs[6]->integers[state]) continue;
      std::vector<double> gates = e.inputs[3]->reals;
      for (std::size_t g = 0; g < gates.size(); ++g)
        for (std::size_t k = 0; k < inputs; ++k)
          gates[g] += w.reals[g * inputs + k] * x.reals[row * inputs + k];
      double* now = h.reals.data() + state * hidden;
      cell_step(gates.data(), *e.inputs[2], now, c.reals.data() + state * hidden, hidden);
      std::copy(now, now + hidden, y.reals.begin() + static_cast<std::ptrdiff_t>(row * hidden));
    }
  return {std::move(y), std::move(h), std::move(c)};
}

Sample lstm_sample(DType t, Dim steps, Dim batch, Dim inputs, Dim hidden, int reverse,
                   bool lengths) {
  Dim gates = hidden * Dim(4);
  Sample s{{Type(t, {steps, batch, inputs}), Type(t, {gates, inputs}), Type(t, {gates, hidden}),
            Type(t, {gates}), Type(t, {batch, hidden}), Type(t, {batch, hidden})},
           {{"reverse", reverse}}};
  if (lengths) s.operands.push_back(i32({batch}));
  return s;
}

}  // namespace

constinit const Op ops::lstm_cell = {
    .name = "lstm_cell",
    .doc =
        "One step of an LSTM: operands gates of the input [b,4h] (bias included), h [b,h], c "
        "[b,h], recurrent weights [4h,h]; results the new h and c. Gates in the order input, "
        "output, forget, cell.",
    .infer = infer_cell,
    .expand = expand_cell,
    .eval = eval_cell,
    .samples = []() -> Samples {
      auto sample = [](DType t, Dim b, Dim h) -> Sample {
        return {
            {Type(t, {b, h * Dim(4)}), Type(t, {b, h}), Type(t, {b, h}), Type(t, {h * Dim(4), h})},
            {}};
      };
      return {sample(DType::f32, 2, 3), sample(DType::f16, 1, 4), sample(DType::f32, 0, 2),
              sample(DType::f32, sample_symbol(), 5)};
    },
};

constinit const Op ops::lstm = {
    .name = "lstm",
    .doc =
        "An LSTM over time, one direction: operands x [steps,b,i], weights [4h,i], recurrent "
        "weights [4h,h], bias [4h], first h and c [b,h], optionally lengths [b] (past its length "
        "a sequence keeps its state and y is 0). Attribute reverse = 1 runs from the last step. "
        "Results: y [steps,b,h], last h, last c. Gates in the order input, output, forget, "
        "cell. Unrolled up to 16 steps, else a while_loop.",
    .infer = infer_lstm,
    .expand = expand_lstm,
    .eval = eval_lstm,
    .samples = []() -> Samples {
      return {lstm_sample(DType::f32, 3, 2, 4, 3, 0, false),
              lstm_sample(DType::f32, 3, 2, 4, 3, 1, true),
              lstm_sample(DType::f32, 4, 2, 3, 2, 1, false),
              lstm_sample(DType::f16, 1, 1, 2, 2, 0, false),
              lstm_sample(DType::f32, 18, 1, 2, 2, 0, false),
              lstm_sample(DType::f32, 17, 2, 2, 3, 1, true),
              lstm_sample(DType::f32, sample_symbol(), 2, 2, 2, 0, true)};
    },
};

}  // namespace hone
