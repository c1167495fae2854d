// Recurrent layers, with PyTorch's names, shapes, gates and first values of their states. f32.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/module.h"
#include "tensor/tensor.h"

namespace hone::nn {

struct RecurrentOptions {
  std::int64_t in = 0, hidden = 0, layers = 1;
  bool bias = true;
  bool batch_first = false;    // x and output are [n, steps, ...], else [steps, n, ...]
  bool bidirectional = false;  // each layer also runs from the last step; outputs are side by side
  double dropout = 0;          // of the output of every layer but the last
};

// The states of a layer k are weight_ih_lk [gates * hidden, in], weight_hh_lk [gates * hidden,
// hidden], bias_ih_lk and bias_hh_lk [gates * hidden], with the suffix _reverse for the second
// direction. Layers after the first take the output of the one before.
class Recurrent : public Module {
 public:
  // Of one layer and direction. The biases are empty without .bias.
  struct Weights {
    Variable ih, hh, bias_ih, bias_hh;
  };
  std::vector<Weights> weights;  // by layer, and in it by direction

 protected:
  Recurrent(Module& parent, std::string name, const RecurrentOptions&, std::int64_t gates, Where);

  struct Cell {
    Tensor ih;                  // of all steps: x times weight_ih, with its bias
    Tensor hh, bias_hh;         // [hidden, gates * hidden]; the bias is empty without .bias
    std::vector<Tensor> state;  // [n, hidden] each; h is the first
    bool reverse = false;
  };
  struct Ran {
    Tensor output;              // h of each step
    std::vector<Tensor> state;  // after the last
  };
  // Runs all layers. `first` are the states [layers * directions, n, hidden], zeros where empty.
  Ran run(const Tensor& x, const std::vector<Tensor>& first, Ran (*cell)(const Cell&), Where) const;

 private:
  Tensor first_state(const Tensor& given, const Tensor& x, Where) const;
  RecurrentOptions options_;
};

// Gates in, forget, cell, out (Hochreiter and Schmidhuber, 1997; the forget gate: Gers et al.,
// 2000): c = forget * c + in * cell, h = out * tanh(c).
class LSTM : public Recurrent {
 public:
  struct Result {
    Tensor output;    // [steps, n, directions * hidden]
    Tensor h_n, c_n;  // [layers * directions, n, hidden]
  };
  LSTM(Module& parent, std::string name, const RecurrentOptions&, Where = Where::current());
  Result operator()(const Tensor& x, Where = Where::current()) const;
  // From the states h and c [layers * directions, n, hidden].
  Result operator()(const Tensor& x, const Tensor& h, const Tensor& c,
                    Where = Where::current()) const;
};

// Gates reset, update, new (Cho et al., 2014): new = tanh(x part + reset * (h part)), h = (1 -
// update) * new + update * h.
class GRU : public Recurrent {
 public:
  struct Result {
    Tensor output;  // [steps, n, directions * hidden]
    Tensor h_n;     // [layers * directions, n, hidden]
  };
  GRU(Module& parent, std::string name, const RecurrentOptions&, Where = Where::current());
  Result operator()(const Tensor& x, Where = Where::current()) const;
  // From the state h [layers * directions, n, hidden].
  Result operator()(const Tensor& x, const Tensor& h, Where = Where::current()) const;
};

}  // namespace hone::nn
