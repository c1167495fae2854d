// Drops from loops what nobody reads: values that are carried only to compute themselves, and what
// only they need. Not the loops themselves, which are dead code when nothing of them is read.
#pragma once

#include "ir/function.h"

namespace hone {

Function drop_carried(const Function&);

}  // namespace hone
