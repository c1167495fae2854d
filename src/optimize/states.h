// Inputs of a model that a plan keeps as states: what one run returns is what the next one reads,
// without the caller, as the state of a recurrent network, or a cache of fixed size or one that
// grows.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compile/source.h"
#include "plan/plan.h"

namespace hone {

// An input and the output that is its next value: of one type, or longer along one axis. A `*` in
// both stands for the same text, so that one pair names many.
struct StatePair {
  std::string input, output;
};

// Before compiling: the outputs are stored to the inputs, in all variants. An input that an output
// continues along an axis gets a capacity: the most that the output may have there. Returns the
// pairs with their full names. Throws UserError for an unknown name, one that occurs twice, types
// that do not fit, or a size without a bound.
std::vector<StatePair> store_states(Source&, std::span<const StatePair>);
// Then, in the plan that was compiled from it: the inputs become states of group "state", zero or
// empty at first. Takes what store_states() returned.
void keep_states(Plan&, std::span<const StatePair>);

}  // namespace hone
