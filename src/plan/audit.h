// Whether every step of a variant finds what it reads: it was written before, and nothing was
// written over it since. Looks at places and order alone, so it costs nothing beside a run; what a
// step computes is another question.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "plan/plan.h"

namespace hone {

// `size` evaluates a Dim. Throws InternalError that names the step and the buffer: a plan that
// fails is the planner's mistake.
void audit(const Plan&, const Variant&, const std::function<std::int64_t(const Dim&)>& size);
// The same of a plan that somebody else made: what is wrong, or nothing.
std::string audit_problem(const Plan&, const Variant&,
                          const std::function<std::int64_t(const Dim&)>& size);

}  // namespace hone
