// Evaluates nodes that depend only on small constants. Large constants are left to the preparation
// of weights.
#pragma once

#include "ir/function.h"

namespace hone {

// Replaces nodes whose operands are constants and whose results have at most 64 KiB by constants,
// each operation rounded to its dtype. Nodes that only repeat or rearrange a constant stay.
Function fold(const Function&);

}  // namespace hone
