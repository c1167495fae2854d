// Two contractions around a softmax of rows, by the name of attention.
#pragma once

#include "pass/rewrite.h"

namespace hone {

// Of class rounding: the same real function on the same domain. Scores or probabilities that
// somebody else reads stay as they are.
Function raise_attention(const Function&, RuleLog* log = nullptr);

}  // namespace hone
