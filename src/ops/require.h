// Conditions on data, built into a graph: a run that does not meet them is rejected.
#pragma once

#include <source_location>
#include <string_view>

#include "ir/graph.h"

namespace hone {

// Requires every element of `index` (integers) to be in [low, high]. Known values are checked here
// and rejected with a UserError; for others adds an ops::require with message `what`.
void require_within(Value index, const Dim& low, const Dim& high, std::string_view what,
                    std::source_location = std::source_location::current());

// Whether all elements are known to be in range.
bool is_within(Value index, const Dim& low, const Dim& high);
// The operand of the check that require_within adds: 0 when all elements are in range, otherwise an
// element that is not.
Value outsider(Value index, const Dim& low, const Dim& high);

}  // namespace hone
