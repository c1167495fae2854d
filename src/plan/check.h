// Whether a plan's parts fit together: indices lead somewhere, kernels exist, steps have the
// operands that their kind needs. Does not know sizes: those are checked when they are bound.
#pragma once

#include <string_view>

#include "plan/plan.h"

namespace hone {

// Throws UserError naming `where` and the part.
void check(const Plan&, std::string_view where);

}  // namespace hone
