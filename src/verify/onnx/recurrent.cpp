// LSTM, GRU and RNN with their usual activations, one element after the other.
#include <cmath>

#include "verify/onnx/call.h"

namespace hone::onnx {

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One direction of one layer on one sequence of the batch.
class Cell {
 public:
  Cell(Call& c, std::int64_t direction, std::int64_t sequence, std::int64_t gates)
      : c_(c),
        hidden_(c.in(2).dims.at(2)),
        width_(c.in(1).dims.at(2)),
        gates_(gates),
        direction_(direction),
        batch_(c.in(0).dims.at(1)),
        sequence_(sequence),
        h(initial(5)),
        state(initial(6)) {}

  // A gate's sums: of the input with its bias, and of what was there with its own.
  double of_input(std::int64_t t, std::int64_t gate, std::int64_t unit) const {
    const std::int64_t row = (direction_ * gates_ + gate) * hidden_ + unit;
    double sum = bias(gate, unit);
    for (std::int64_t i = 0; i < width_; ++i)
      sum += at(0, (t * batch_ + sequence_) * width_ + i) * at(1, row * width_ + i);
    return sum;
  }
  double of_state(const std::vector<double>& before, std::int64_t gate, std::int64_t unit) const {
    return without_bias(before, gate, unit) + bias(gates_ + gate, unit);
  }
  double without_bias(const std::vector<double>& before, std::int64_t gate,
                      std::int64_t unit) const {
    const std::int64_t row = (direction_ * gates_ + gate) * hidden_ + unit;
    double sum = 0;
    for (std::int64_t i = 0; i < hidden_; ++i)
      sum += before[static_cast<std::size_t>(i)] * at(2, row * hidden_ + i);
    return sum;
  }
  double gate(std::int64_t t, std::int64_t gate, std::int64_t unit) const {
    return of_input(t, gate, unit) + of_state(h, gate, unit);
  }

  void step_lstm(std::int64_t t) {
    std::vector<double> next = h;
    for (std::int64_t u = 0; u < hidden_; ++u) {
      const auto k = static_cast<std::size_t>(u);
      const double i = sigmoid(gate(t, 0, u)), o = sigmoid(gate(t, 1, u)),
                   f = sigmoid(gate(t, 2, u)), g = std::tanh(gate(t, 3, u));
      state[k] = f * state[k] + i * g;
      next[k] = o * std::tanh(state[k]);
    }
    h = next;
  }
  void step_gru(std::int64_t t, bool is_reset_after) {
    std::vector<double> reset = h, next = h;
    for (std::int64_t u = 0; u < hidden_; ++u)
      reset[static_cast<std::size_t>(u)] = sigmoid(gate(t, 1, u));
    std::vector<double> kept = h;
    for (std::size_t k = 0; k < h.size(); ++k) kept[k] *= reset[k];
    for (std::int64_t u = 0; u < hidden_; ++u) {
      const auto k = static_cast<std::size_t>(u);
      const double z = sigmoid(gate(t, 0, u));
      const double before = is_reset_after ? reset[k] * of_state(h, 2, u) : of_state(kept, 2, u);
      next[k] = (1 - z) * std::tanh(of_input(t, 2, u) + before) + z * h[k];
    }
    h = next;
  }
  void step_rnn(std::int64_t t) {
    std::vector<double> next = h;
    for (std::int64_t u = 0; u < hidden_; ++u)
      next[static_cast<std::size_t>(u)] = std::tanh(gate(t, 0, u));
    h = next;
  }

 private:
  double at(std::size_t input, std::int64_t place) const {
    return c_.in(input).values.at(static_cast<std::size_t>(place));
  }
  double bias(std::int64_t gate, std::int64_t unit) const {
    return c_.has(3) ? at(3, (direction_ * 2 * gates_ + gate) * hidden_ + unit) : 0;
  }
  std::vector<double> initial(std::size_t input) const {
    std::vector<double> out(static_cast<std::size_t>(hidden_), 0);
    if (c_.has(input))
      for (std::int64_t u = 0; u < hidden_; ++u)
        out[static_cast<std::size_t>(u)] =
            at(input, (direction_ * batch_ + sequence_) * hidden_ + u);
    return out;
  }

  Call& c_;
  std::int64_t hidden_, width_, gates_, direction_, batch_, sequence_;

 public:
  std::vector<double> h, state;
};

std::vector<Numbers> recurrent(Call& c) {
  const bool is_lstm = c.op() == "LSTM", is_gru = c.op() == "GRU";
  const std::string direction = c.text("direction", "forward");
  const Sizes& dims = c.in(0).dims;
  const std::int64_t gates = is_lstm  ? 4
                             : is_gru ? 3
                                      : 1,
                     directions = c.in(1).dims.at(0), length = dims.at(0), batch = dims.at(1),
                     hidden = c.in(2).dims.at(2);
  if (c.has(4) || c.has(7) || c.integer("layout", 0) != 0 || c.integer("input_forget", 0) != 0 ||
      c.integer("hidden_size", hidden) != hidden ||
      directions != (direction == "bidirectional" ? 2 : 1))
    throw NotJudged();
  check_work(static_cast<double>(directions * length * batch * gates * hidden) *
             static_cast<double>(hidden + c.in(1).dims.at(2)));
  const bool is_reset_after = c.integer("linear_before_reset", 0) != 0;
  Numbers y{c.in(0).dtype, {length, directions, batch, hidden}, {}};
  y.values.resize(static_cast<std::size_t>(y.count()));
  Numbers last{c.in(0).dtype, {directions, batch, hidden}, {}}, state = last;
  for (std::int64_t d = 0; d < directions; ++d)
    for (std::int64_t b = 0; b < batch; ++b) {
      Cell cell(c, d, b, gates);
      for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t t = d == 1 || direction == "reverse" ? length - 1 - i : i;
        is_lstm ? cell.step_lstm(t) : is_gru ? cell.step_gru(t, is_reset_after) : cell.step_rnn(t);
        for (std::int64_t u = 0; u < hidden; ++u)
          y.values[static_cast<std::size_t>(((t * directions + d) * batch + b) * hidden + u)] =
              cell.h[static_cast<std::size_t>(u)];
      }
      last.values.insert(last.values.end(), cell.h.begin(), cell.h.end());
      state.values.insert(state.values.end(), cell.state.begin(), cell.state.end());
    }
  std::vector<Numbers> out = {y, last};
  if (is_lstm) out.push_back(state);
  return out;
}

constexpr MeaningRow recurrent_rows[] = {
    {"LSTM", recurrent}, {"GRU", recurrent}, {"RNN", recurrent}};

}  // namespace

std::span<const MeaningRow> recurrent_meanings() { return recurrent_rows; }

}  // namespace hone::onnx
