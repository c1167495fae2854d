// Long reductions that give few elements, in two stages: parts of the reduced axis one by one, then
// what the parts gave, in their order. How many parts there are depends on sizes alone. A rewrite
// of a group before it is lowered; not a kernel.
#pragma once

#include <optional>
#include <vector>

#include "ir/function.h"

namespace hone {

struct SplitFunction {
  Function function;
  // Of the function, to be kept in memory: what the parts give, and all of them where it is read.
  std::vector<Value> partial;
};

// Of a function of core operations; nothing when no reduction in it gains.
std::optional<SplitFunction> split_reductions(const Function&);

}  // namespace hone
