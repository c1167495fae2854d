// What a plan's prepare steps made of its weights.
#pragma once

#include "plan/plan.h"

namespace hone {

// Whether every prepared buffer that the variant's prepare steps write has data.
bool is_prepared(const Plan&, const Variant&);

}  // namespace hone
