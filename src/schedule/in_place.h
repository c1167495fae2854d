// Which results of a group may reuse the memory of a parameter. Does not consider lifetimes.
#pragma once

#include <utility>
#include <vector>

#include "ir/function.h"

namespace hone {

// (result, parameter): element i of the parameter is read only for element i of this result, so a
// loop nest that reads an element before writing it may overwrite it.
std::vector<std::pair<int, int>> in_place_pairs(const Function& group);

}  // namespace hone
