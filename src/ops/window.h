// The taps of a sliding window: for each position in the window, the box of outputs for which the
// input at that position exists, and where those inputs are. Used by the reference implementations
// of conv and reduce_window; kernels do their own index arithmetic.
#pragma once

#include <array>

#include "ops/eval.h"

namespace hone {

struct WindowTap {
  Rows<2> rows;                         // over output and input
  std::array<std::int64_t, 2> first{};  // output and its input
};

struct WindowShape {
  Sizes input, output, window, strides, dilations, pads_low;  // one entry for each axis
};

// In row-major order of the window positions.
std::vector<WindowTap> window_taps(const WindowShape&);

}  // namespace hone
