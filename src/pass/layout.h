// Puts convolutional parts of a function into channels-last form. Chooses layouts, not kernels:
// types change only inside, behind explicit transposes.
#pragma once

#include "ir/function.h"

namespace hone {

// Every convolution becomes channels_last; transposes are pushed through elementwise operations,
// concat, pad, slice, pooling, reductions, and reshapes of spatial axes, merged with the function's
// own, and remain only where a value must keep its old order. Weights are transposed by graph
// operations on constants. A function without convolutions is returned as it is.
Function layout(const Function&);

}  // namespace hone
