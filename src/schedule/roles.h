// What each node is to the scheduler, before groups are formed.
#pragma once

#include "ir/function.h"
#include "schedule/group.h"

namespace hone {

// Fills in Grouping::roles. Needs Grouping::order.
void find_roles(const Function&, Grouping&);

// Per node: its value depends on weights and numbers alone and has static sizes.
std::vector<bool> find_weight_nodes(const Function&, const Grouping&);

// Per node: a result of the function or an operand of a control node. Must be in memory.
std::vector<bool> find_read_nodes(const Function&, const Grouping&);

}  // namespace hone
