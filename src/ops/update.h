// The update of dynamic_update, for callers that own the operand.
#pragma once

#include "ir/evaluation.h"

namespace hone {

// Replaces the part of x that begins at `starts`, which are clamped so that the part is inside x.
void update_box(Wide& x, const Wide& part, const Wide& starts);

}  // namespace hone
