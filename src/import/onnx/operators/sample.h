// Interpolated reading of an image, for GridSample, RoiAlign and DeformConv.
#pragma once

#include <string_view>

#include "ops/common.h"

namespace hone::onnx {

// Interpolation along one axis.
enum class Interpolation : std::uint8_t { nearest, linear, cubic };
// The value outside the axis: zero, its last element, or its mirror image.
enum class Outside : std::uint8_t { zeros, border, reflection };

struct SampledAxis {
  Dim size;
  Value at;  // [n, q], in elements
  Interpolation how = Interpolation::linear;
  Outside outside = Outside::zeros;
  bool corners = false;  // reflect about the centers of the first and last element, not their edges
};

// x is [n, c, p] where p counts the elements of the axes in row-major order; the result is [n, c,
// q] in x's dtype. Each element is the weighted sum of its neighbours along all axes.
Value sampled(Value x, const std::vector<SampledAxis>& axes);

// The neighbours and their weights: [n, c, q, k] and [n, 1, q, k]; weights outside are 0.
struct Neighbours {
  Value values, weights;
};
Neighbours neighbours(Value x, const std::vector<SampledAxis>& axes);

}  // namespace hone::onnx
