// Conditions on data that a run must meet, built into a graph: what is not met refuses the run.
#pragma once

#include <source_location>
#include <string_view>

#include "ir/op.h"

namespace hone {

// Every element of `index` (integers) lies from low to high, both inclusive. Known values are
// checked here, and refused with a UserError; others by an ops::require, whose message is `what`.
void require_within(Value index, const Dim& low, const Dim& high, std::string_view what,
                    std::source_location = std::source_location::current());

// Whether all elements are known to lie there.
bool is_within(Value index, const Dim& low, const Dim& high);
// The operand of the check that require_within makes: 0 when all is well, else an element that lies
// outside.
Value outsider(Value index, const Dim& low, const Dim& high);

}  // namespace hone
