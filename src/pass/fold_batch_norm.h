// Batch normalisation after a convolution becomes part of its weights. Changes no value but by
// rounding; leaves normalisations that stand alone.
#pragma once

#include "ir/function.h"

namespace hone {

// For f32 and f64, where weights and statistics are constants and nobody else uses the
// convolution. The new weights are graph operations on constants, computed once before the run.
Function fold_batch_norm(const Function&);

}  // namespace hone
