// Replaces composite operations by what they are made of, as far as no kernel takes them.
#pragma once

#include "ir/function.h"

namespace hone {

// No composite is left but those that groups take whole: elementwise ones, rows (softmax, norms)
// and attention. Bodies of control nodes included.
Function expand(const Function&);

}  // namespace hone
