// Checks that composite operations expand into operations that compute the same. Plans and the
// reference both use `expand`, so a wrong expansion would be wrong in both.
#pragma once

#include "ref/evaluate.h"

namespace hone {

// Checks each composite operation of the function that has its own definition (Op::eval), once per
// kind of call: its expansion must give the same as the definition, on made-up data at these sizes.
// Skips large calls, calls that refuse such data, and bodies of loops and branches. Throws
// InternalError that names the operation and its origins.
void check_expansions(const Function&, const Sizing&);

}  // namespace hone
