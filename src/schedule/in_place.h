// Which results of a group may take the memory of a parameter. Says nothing about lifetimes.
#pragma once

#include <utility>
#include <vector>

#include "ir/function.h"

namespace hone {

// (result, parameter): element i of the parameter is read for element i of this result and for
// nothing else, so a loop nest that reads an element before it writes the same may overwrite it.
std::vector<std::pair<int, int>> in_place_pairs(const Function& group);

}  // namespace hone
