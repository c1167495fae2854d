// The scheduler's role for each node, before groups are formed.
#pragma once

#include "ir/function.h"
#include "schedule/grouping.h"

namespace hone {

// Per node: its value depends on weights and numbers alone and has static sizes.
std::vector<bool> find_weight_nodes(const Function&, const Grouping&);

// Fills in Grouping::roles and has_replays. Needs Grouping::order. Without `assemble` no role is
// assembled.
void find_roles(const Function&, const std::vector<bool>& weights, bool assemble, Grouping&);

// Per node: it must be in memory, as a result of the function or an operand of a control node or an
// assembly.
std::vector<bool> find_read_nodes(const Function&, const Grouping&);

}  // namespace hone
