// Which results of a group may reuse the memory of a parameter. Does not consider lifetimes.
#pragma once

#include <utility>
#include <vector>

#include "ir/function.h"

namespace hone {

// (result, parameter): element i of the parameter is read only for element i of this result, so a
// loop nest that reads an element before writing it may overwrite it. Element i of the parameter
// may also be read for element i of other results where stores_last() holds; and for earlier
// results, where all are computed from element i of one contraction or reduction: kernels store
// element i of all results in their order.
std::vector<std::pair<int, int>> in_place_pairs(const Function& group);

// Whether the group's results have one shape and are computed element by element, in one pass. A
// loop nest then computes element i of all results before it stores any of them.
bool stores_last(const Function& group);

}  // namespace hone
