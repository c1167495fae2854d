// What dynamic_update does to its operand, for those who own it.
#pragma once

#include "ir/op.h"

namespace hone {

// Replaces the part of x that begins at `starts`, which are clamped so that it lies inside.
void update_box(Wide& x, const Wide& part, const Wide& starts);

}  // namespace hone
