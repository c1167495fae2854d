// Replaces two contractions around a softmax of rows by the composite `attention`.
#pragma once

#include "pass/rewrite.h"

namespace hone {

// Of class rounding: the same real function on the same domain. Not applied where the scores or
// probabilities have another user.
Function raise_attention(const Function&, RuleLog* log = nullptr);

}  // namespace hone
