// Moves reshapes and transposes of a contraction's or reduction's result past the elementwise
// operations that follow, so that these can join its group. Other movements stay: the operations
// may belong after them.
#pragma once

#include "ir/function.h"

namespace hone {

Function sink(const Function&);

}  // namespace hone
