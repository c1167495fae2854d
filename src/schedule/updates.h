// Values that are another value with a part changed: which of them may reuse that value's memory,
// and the order of groups that makes this possible. Does not assign places.
#pragma once

#include <vector>

#include "ir/function.h"
#include "schedule/grouping.h"

namespace hone {

// The part that a dynamic_update or scatter writes.
Value changed_part(Value update);

// Fills in Grouping::updates: each dynamic_update or scatter whose first operand is in memory that
// this function may write to.
void find_updates(const Function&, const std::vector<bool>& weights, const std::vector<bool>& owned,
                  Grouping&);

// Moves groups that overwrite memory after those that read it, where dependences allow it: updates
// after readers of their first operand, and the producer of result i after readers of the owned
// parameter i.
void order_writers(const Function&, const std::vector<bool>& owned, Grouping&);

}  // namespace hone
