// Evaluates what depends on small constants alone. Large constants are left to the preparation of
// weights.
#pragma once

#include "ir/function.h"

namespace hone {

// Replaces nodes whose operands are constants and whose results have at most 64 KiB by constants,
// each operation rounded to its dtype. What only repeats or rearranges a constant stays.
Function fold(const Function&);

}  // namespace hone
