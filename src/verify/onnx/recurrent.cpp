// LSTM, GRU and RNN, one element after the other.
#include <algorithm>
#include <cmath>

#include "verify/onnx/call.h"

namespace hone::onnx {

namespace {

struct Activation {
  std::string name;
  double alpha = 0, beta = 0;

  double operator()(double x) const {
    if (name == "Sigmoid") return 1 / (1 + std::exp(-x));
    if (name == "Tanh") return std::tanh(x);
    if (name == "Relu") return std::fmax(x, 0);
    if (name == "Softsign") return x / (1 + std::fabs(x));
    if (name == "Softplus") return std::log1p(std::exp(x));
    if (name == "Affine") return alpha * x + beta;
    if (name == "ScaledTanh") return alpha * std::tanh(beta * x);
    if (name == "HardSigmoid") return std::fmin(std::fmax(alpha * x + beta, 0), 1);
    if (name == "LeakyRelu") return x < 0 ? alpha * x : x;
    if (name == "Elu") return x < 0 ? alpha * std::expm1(x) : x;
    if (name == "ThresholdedRelu") return x >= alpha ? x : 0;
    throw NotJudged();
  }
};

// Those of all directions. Their numbers are listed in order, for activations that have some.
std::vector<Activation> activations_of(Call& c, const std::vector<std::string>& usual,
                                       std::int64_t directions) {
  std::vector<std::string> names = c.texts("activations");
  const std::vector<double> alphas = c.reals("activation_alpha"),
                            betas = c.reals("activation_beta");
  if (names.empty())
    for (std::int64_t d = 0; d < directions; ++d)
      names.insert(names.end(), usual.begin(), usual.end());
  std::size_t alpha = 0, beta = 0;
  const auto next = [](const std::vector<double>& list, std::size_t& at, double otherwise) {
    if (at < list.size()) return list[at++];
    if (std::isnan(otherwise)) throw NotJudged();  // the page has no default
    return otherwise;
  };
  std::vector<Activation> out;
  for (const std::string& name : names) {
    Activation a{name};
    const bool has_both = name == "Affine" || name == "ScaledTanh";
    if (has_both || name == "ThresholdedRelu") a.alpha = next(alphas, alpha, NAN);
    if (name == "LeakyRelu") a.alpha = next(alphas, alpha, 0.01);
    if (name == "Elu") a.alpha = next(alphas, alpha, 1);
    if (name == "HardSigmoid") a.alpha = next(alphas, alpha, 0.2);
    if (has_both) a.beta = next(betas, beta, NAN);
    if (name == "HardSigmoid") a.beta = next(betas, beta, 0.5);
    out.push_back(std::move(a));
  }
  return out;
}

// Sizes and options of a node.
struct Layer {
  Call& c;
  std::int64_t gates, directions, length, batch, width, hidden;
  bool batch_first, reset_after, input_forget;
  double clip;
  std::vector<Activation> activations;

  double at(std::size_t input, std::int64_t place) const {
    return c.in(input).values.at(static_cast<std::size_t>(place));
  }
  // [length, batch, .], or the batch first.
  std::int64_t place(std::int64_t t, std::int64_t b) const {
    return batch_first ? b * length + t : t * batch + b;
  }
  // [directions, batch, .], or the batch first.
  std::int64_t place_of_state(std::int64_t d, std::int64_t b) const {
    return batch_first ? b * directions + d : d * batch + b;
  }
  double clipped(double x) const { return clip > 0 && x == x ? std::clamp(x, -clip, clip) : x; }
};

// One direction of one sequence of the batch.
class Cell {
 public:
  Cell(const Layer& l, std::int64_t direction, std::int64_t sequence)
      : h(initial(l, 5, direction, sequence)),
        state(initial(l, 6, direction, sequence)),
        l_(l),
        direction_(direction),
        sequence_(sequence) {}

  void step(std::int64_t t) {
    if (l_.gates == 4) return step_lstm(t);
    if (l_.gates == 3) return step_gru(t);
    std::vector<double> next = h;
    for (std::int64_t u = 0; u < l_.hidden; ++u) next[index(u)] = f(0)(l_.clipped(gate(t, 0, u)));
    h = next;
  }

  std::vector<double> h, state;

 private:
  static std::vector<double> initial(const Layer& l, std::size_t input, std::int64_t d,
                                     std::int64_t b) {
    std::vector<double> out(static_cast<std::size_t>(l.hidden), 0);
    if (l.c.has(input))
      for (std::int64_t u = 0; u < l.hidden; ++u)
        out[static_cast<std::size_t>(u)] = l.at(input, l.place_of_state(d, b) * l.hidden + u);
    return out;
  }
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  const Activation& f(std::size_t i) const {
    const std::size_t each = l_.gates == 4 ? 3 : l_.gates == 3 ? 2 : 1;
    return l_.activations.at(index(direction_) * each + i);
  }

  // A gate's sums: of the input with its bias, and of what was there with its own.
  double of_input(std::int64_t t, std::int64_t gate, std::int64_t unit) const {
    const std::int64_t row = (direction_ * l_.gates + gate) * l_.hidden + unit;
    double sum = bias(gate, unit);
    for (std::int64_t i = 0; i < l_.width; ++i)
      sum += l_.at(0, l_.place(t, sequence_) * l_.width + i) * l_.at(1, row * l_.width + i);
    return sum;
  }
  double of_state(const std::vector<double>& before, std::int64_t gate, std::int64_t unit) const {
    const std::int64_t row = (direction_ * l_.gates + gate) * l_.hidden + unit;
    double sum = bias(l_.gates + gate, unit);
    for (std::int64_t i = 0; i < l_.hidden; ++i)
      sum += before[index(i)] * l_.at(2, row * l_.hidden + i);
    return sum;
  }
  double gate(std::int64_t t, std::int64_t gate, std::int64_t unit) const {
    return of_input(t, gate, unit) + of_state(h, gate, unit);
  }
  double bias(std::int64_t gate, std::int64_t unit) const {
    return l_.c.has(3) ? l_.at(3, (direction_ * 2 * l_.gates + gate) * l_.hidden + unit) : 0;
  }
  // What a gate sees of the cell: of input, output and forget gate.
  double peephole(std::int64_t gate, std::int64_t unit, double cell) const {
    return l_.c.has(7) ? l_.at(7, (direction_ * 3 + gate) * l_.hidden + unit) * cell : 0;
  }

  void step_lstm(std::int64_t t) {
    std::vector<double> next = h;
    for (std::int64_t u = 0; u < l_.hidden; ++u) {
      double& cell = state[index(u)];
      const double i = f(0)(l_.clipped(gate(t, 0, u) + peephole(0, u, cell))),
                   kept = f(0)(l_.clipped(gate(t, 2, u) + peephole(2, u, cell))),
                   forget = l_.input_forget ? 1 - i : kept;
      cell = forget * cell + i * f(1)(l_.clipped(gate(t, 3, u)));
      const double o = f(0)(l_.clipped(gate(t, 1, u) + peephole(1, u, cell)));
      // The page clips what activations get, ONNX Runtime not the cell.
      if (l_.clip > 0 && std::fabs(cell) > l_.clip) throw NotJudged();
      next[index(u)] = o * f(2)(cell);
    }
    h = next;
  }
  void step_gru(std::int64_t t) {
    std::vector<double> reset = h, next = h, kept = h;
    for (std::int64_t u = 0; u < l_.hidden; ++u) {
      reset[index(u)] = f(0)(l_.clipped(gate(t, 1, u)));
      kept[index(u)] *= reset[index(u)];
    }
    for (std::int64_t u = 0; u < l_.hidden; ++u) {
      const double z = f(0)(l_.clipped(gate(t, 0, u))),
                   before =
                       l_.reset_after ? reset[index(u)] * of_state(h, 2, u) : of_state(kept, 2, u);
      next[index(u)] = (1 - z) * f(1)(l_.clipped(of_input(t, 2, u) + before)) + z * h[index(u)];
    }
    h = next;
  }

  const Layer& l_;
  std::int64_t direction_, sequence_;
};

Layer layer_of(Call& c) {
  const bool is_lstm = c.op() == "LSTM", is_gru = c.op() == "GRU",
             batch_first = c.integer("layout", 0) != 0;
  const Sizes &dims = c.in(0).dims, &weights = c.in(2).dims;
  if (dims.size() != 3 || weights.size() != 3) throw NotJudged();
  const std::int64_t directions = weights[0];
  const std::vector<std::string> usual = is_lstm
                                             ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                         : is_gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                  : std::vector<std::string>{"Tanh"};
  Layer l{c,
          is_lstm  ? 4
          : is_gru ? 3
                   : 1,
          directions,
          dims[batch_first ? 1 : 0],
          dims[batch_first ? 0 : 1],
          dims[2],
          weights[2],
          batch_first,
          c.integer("linear_before_reset", 0) != 0,
          c.integer("input_forget", 0) != 0,
          c.real("clip", 0),
          activations_of(c, usual, directions)};
  static_cast<void>(c.integer("output_sequence", 0));  // of the first version
  if (c.integer("hidden_size", l.hidden) != l.hidden) throw NotJudged();
  return l;
}

std::vector<Numbers> recurrent(Call& c) {
  const Layer l = layer_of(c);
  const std::string direction = c.text("direction", "forward");
  if (l.directions != (direction == "bidirectional" ? 2 : 1)) throw NotJudged();
  check_work(static_cast<double>(l.directions * l.length * l.batch * l.gates * l.hidden) *
             static_cast<double>(l.hidden + l.width));
  Numbers y{c.in(0).dtype, {l.length, l.directions, l.batch, l.hidden}, {}},
      last{c.in(0).dtype, {l.directions, l.batch, l.hidden}, {}};
  if (l.batch_first) {
    y.dims = {l.batch, l.length, l.directions, l.hidden};
    last.dims = {l.batch, l.directions, l.hidden};
  }
  // Behind the end of a sequence there are zeros.
  y.values.resize(static_cast<std::size_t>(y.count()));
  last.values.resize(static_cast<std::size_t>(last.count()));
  Numbers state = last;
  for (std::int64_t d = 0; d < l.directions; ++d)
    for (std::int64_t b = 0; b < l.batch; ++b) {
      const bool is_back = d == 1 || direction == "reverse";
      const std::int64_t length =
          c.has(4)
              ? std::clamp<std::int64_t>(c.list(4).at(static_cast<std::size_t>(b)), 0, l.length)
              : l.length;
      Cell cell(l, d, b);
      for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t t = is_back ? length - 1 - i : i;
        cell.step(t);
        const std::int64_t row = l.batch_first ? (b * l.length + t) * l.directions + d
                                               : (t * l.directions + d) * l.batch + b;
        std::ranges::copy(cell.h, y.values.begin() + row * l.hidden);
      }
      const std::int64_t to = l.place_of_state(d, b) * l.hidden;
      std::ranges::copy(cell.h, last.values.begin() + to);
      std::ranges::copy(cell.state, state.values.begin() + to);
    }
  std::vector<Numbers> out = {y, last};
  if (l.gates == 4) out.push_back(state);
  return out;
}

constexpr MeaningRow recurrent_rows[] = {
    {"LSTM", recurrent}, {"GRU", recurrent}, {"RNN", recurrent}};

}  // namespace

std::span<const MeaningRow> recurrent_meanings() { return recurrent_rows; }

}  // namespace hone::onnx
