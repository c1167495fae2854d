// Replaces composite operations by their expansions.
#pragma once

#include <functional>
#include <vector>

#include "ir/function.h"

namespace hone {

// Leaves no composites except those for which `stays`, if given, returns true. Bodies of control
// nodes are not changed.
Function expand_composites(const Function&, const std::function<bool(const Op&)>& stays = {});

// Expands these nodes, by one level. The function itself if there is none.
Function expand_nodes(const Function&, const std::vector<NodeId>&);

}  // namespace hone
