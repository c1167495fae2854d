// Checks that a plan is consistent: indices are in range, kernels exist, steps have the operands
// that their kind needs. Does not check sizes: that happens when they are bound.
#pragma once

#include <string_view>

#include "plan/plan.h"

namespace hone {

// Throws UserError naming `where` and the faulty part.
void check(const Plan&, std::string_view where);

}  // namespace hone
