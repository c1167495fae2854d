// Long reductions with few results, in two stages: parts of the reduced axis separately, then the
// partial results in order. The number of parts depends on sizes only. A rewrite of a group before
// it is lowered; not a kernel.
#pragma once

#include <optional>
#include <vector>

#include "ir/function.h"

namespace hone {

struct SplitFunction {
  Function function;
  // Values of the function to be kept in memory: the partial results, and all of them where it is
  // read.
  std::vector<Value> partial;
};

// Takes a function of core operations; returns nullopt if no reduction in it would gain.
std::optional<SplitFunction> split_reductions(const Function&);

}  // namespace hone
