// Loops without what nobody reads of them.
#pragma once

#include "ir/function.h"

namespace hone {

// The function in which no while_loop, also inside a body, has an operand that neither its readers
// nor its condition ask for, directly or through another carried value. The same graph if there is
// none.
Function without_unread_carries(const Function&);

}  // namespace hone
