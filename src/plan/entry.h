// The entries of a plan by name, and one of them as a plan of its own.
#pragma once

#include <string>
#include <string_view>

#include "plan/plan.h"

namespace hone {

// "'train', 'predict'"
std::string entry_names(const Plan&);
// Empty: the only one. Throws UserError that lists the entries.
const PlanEntry& entry_named(const Plan&, std::string_view name);
// Adds a state behind those of its group, which decides its offset. Its sizes must be fixed.
void add_state(Plan&, PlanState);
// The plan with this entry alone, as a function: its states are inputs, and what is stored to them
// is a result that overwrites the input.
Plan as_function(Plan, std::string_view entry);

}  // namespace hone
