// A quick check of what the compiler gets, for release builds, too. The whole check of a function
// is verify() in function.h.
#pragma once

#include "ir/function.h"

namespace hone {

// Checks the types of branches and loops and of what is in their bodies: what a loop carries must
// keep its type. Throws InternalError.
void verify_bodies(const Function&);

}  // namespace hone
