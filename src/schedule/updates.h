// Values that are another value with a part changed: which of them may take that value's memory,
// and the order of groups that lets them. Says nothing about places.
#pragma once

#include <vector>

#include "ir/function.h"
#include "schedule/grouping.h"

namespace hone {

// What a dynamic_update or scatter writes.
Value changed_part(Value update);

// Fills in Grouping::updates: a dynamic_update or scatter whose first operand is in memory that
// this function may write to.
void find_updates(const Function&, const std::vector<bool>& weights, const std::vector<bool>& owned,
                  Grouping&);

// Moves groups that overwrite memory behind those that read it, where nothing speaks against it:
// updates behind readers of their first operand, and what makes result i behind readers of the
// owned parameter i.
void order_writers(const Function&, const std::vector<bool>& owned, Grouping&);

}  // namespace hone
