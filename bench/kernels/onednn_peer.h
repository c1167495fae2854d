// oneDNN as a baseline: it chooses its own best formats and uses one thread. Plans call oneDNN
// through a different adapter.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace hone::bench {

struct ConvShape {
  std::vector<std::int64_t> in, window, strides, dilations, pads;  // spatial; equal pads
  std::int64_t groups = 1, in_channels = 1, out_channels = 1;

  std::int64_t out(std::size_t i) const {
    return (in[i] + 2 * pads[i] - (window[i] - 1) * dilations[i] - 1) / strides[i] + 1;
  }
  double flops() const {
    double n = 2.0 * static_cast<double>(out_channels * (in_channels / groups));
    for (std::size_t i = 0; i < in.size(); ++i) n *= static_cast<double>(out(i) * window[i]);
    return n;
  }
};

class OneDnnPeer {
 public:
  // Empty if the library is not installed.
  static std::optional<OneDnnPeer> open();
  // Each returns a call that computes the whole operation once, on its own memory.
  std::function<void()> matmul(std::int64_t m, std::int64_t n, std::int64_t k);
  std::function<void()> convolution(const ConvShape&);

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace hone::bench
