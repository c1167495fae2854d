// Replaces composite operations by their expansions, unless a kernel computes them directly.
#pragma once

#include "ir/function.h"

namespace hone {

// The only composites left are those that groups take whole: elementwise ones, rows (softmax,
// norms) and attention. A norm whose mean is also computed by itself, as its derivative does, is
// expanded, so that it is computed once. Includes the bodies of control nodes.
Function expand(const Function&);

}  // namespace hone
