// Whether composite operations are made of smaller ones that mean the same. Plans and the reference
// both compute what `expand` gives, so an expansion that is wrong would be wrong in both.
#pragma once

#include "ref/evaluate.h"

namespace hone {

// Each composite operation of the function that has a definition of its own (Op::eval), once for
// each kind of call: its expansion must give what the definition gives, on made-up data at these
// sizes. Large calls, those that refuse such data, and bodies of loops and branches are left out.
// Throws InternalError that names the operation and the nodes it came from.
void check_expansions(const Function&, const Sizing&);

}  // namespace hone
