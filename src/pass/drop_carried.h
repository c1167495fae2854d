// Drops from loops what nobody reads: values that are carried only to compute themselves, and what
// only they need. Not the loops themselves, which are dead code when nothing of them is read.
#pragma once

#include "ir/function.h"

namespace hone {

// The function in which no while_loop, also inside a body, has an operand that neither its readers
// nor its condition nor an effect of its body ask for, directly or through another carried value.
// The same graph if there is none.
Function drop_carried(const Function&);

}  // namespace hone
