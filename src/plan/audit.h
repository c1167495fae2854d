// Checks that every step of a variant reads valid data: written before, and not overwritten since.
// Uses only memory ranges and the order of steps, so it is cheap compared with a run; does not
// check what a step computes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "plan/plan.h"

namespace hone {

// `size` evaluates a Dim. Throws InternalError that names the step and the buffer: a failure is a
// bug of the planner.
void audit(const Plan&, const PlanEntry&, const Variant&,
           const std::function<std::int64_t(const Dim&)>& size);
// The same for an untrusted plan: returns the problem, or an empty string.
std::string audit_problem(const Plan&, const PlanEntry&, const Variant&,
                          const std::function<std::int64_t(const Dim&)>& size);

}  // namespace hone
