// Replaces composite operations by what they are made of.
#pragma once

#include <functional>

#include "ir/function.h"

namespace hone {

// No composite is left but those that `stays` holds, when given. Bodies of control nodes are left
// as they are.
Function expand_composites(const Function&, const std::function<bool(const Op&)>& stays = {});

}  // namespace hone
