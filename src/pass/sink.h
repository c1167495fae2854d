// Moves reshapes and transposes of what a contraction or reduction gives past the elementwise
// operations that follow, so that these can join it. Elsewhere nothing is moved: there the same
// operations may be wanted behind the movement.
#pragma once

#include "ir/function.h"

namespace hone {

Function sink(const Function&);

}  // namespace hone
