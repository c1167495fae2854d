// Reading an image at places between its elements, as GridSample, RoiAlign and DeformConv do.
#pragma once

#include <string_view>

#include "ops/common.h"

namespace hone::onnx {

// How one axis is read.
enum class Interpolation : std::uint8_t { nearest, linear, cubic };
// What lies outside of it: nothing, its last element, or itself mirrored.
enum class Outside : std::uint8_t { zeros, border, reflection };

struct SampledAxis {
  Dim size;
  Value at;  // [n, q], in elements
  Interpolation how = Interpolation::linear;
  Outside outside = Outside::zeros;
  bool corners = false;  // reflection is about the first and last element, not about their edges
};

// x is [n, c, p] where p counts the elements of the axes in row-major order; the result is
// [n, c, q] in x's dtype. Each element is the weighed sum of its neighbours along all axes.
Value sampled(Value x, const std::vector<SampledAxis>& axes);

// The neighbours and their weights themselves: [n, c, q, k] and [n, 1, q, k], weights 0 outside.
struct Neighbours {
  Value values, weights;
};
Neighbours neighbours(Value x, const std::vector<SampledAxis>& axes);

}  // namespace hone::onnx
