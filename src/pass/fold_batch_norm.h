// Folds batch normalisation after a convolution into the convolution's weights. Values change only
// by rounding; other normalisations stay.
#pragma once

#include "ir/function.h"

namespace hone {

// For f32 and f64, where weights and statistics are constants and the convolution has no other
// user. The new weights are graph operations on constants, computed once before the run.
Function fold_batch_norm(const Function&);

}  // namespace hone
