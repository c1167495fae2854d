// Puts convolutional parts of a function into channels-last form. A choice of layout, not of
// kernels: types change only inside, behind explicit transposes.
#pragma once

#include "ir/function.h"

namespace hone {

// Every convolution becomes channels_last; transposes are pushed through elementwise operations,
// concat, pad, slice, pooling and reductions, merge with the function's own, and remain only where
// a value must have its old order. Weights are transposed by graph operations on constants. A
// function without convolutions is returned as it is.
Function layout(const Function&);

}  // namespace hone
