// Replaces composite operations by what they are made of.
#pragma once

#include "ir/function.h"

namespace hone {

// Composites that groups take whole: elementwise ones, and rows (softmax, norms).
bool stays_whole(const Op&);

// No composite is left but those that `keep` holds; bodies of control nodes included.
Function expand(const Function&, bool (*keep)(const Op&) = stays_whole);

}  // namespace hone
