// Inputs of a model that a plan keeps as states: what one run returns is what the next one reads,
// without the caller, as the state of a recurrent network or a cache of fixed size.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compile/source.h"
#include "plan/plan.h"

namespace hone {

struct StatePair {
  std::string input, output;  // by name, of one type without open sizes
};

// Before compiling: the outputs are stored to the inputs, in all variants. Throws UserError for an
// unknown name, one that occurs twice, or types that differ.
void store_states(Source&, std::span<const StatePair>);
// Then, in the plan that was compiled from it: the inputs become states of group "state", zero at
// first.
void keep_states(Plan&, std::span<const StatePair>);

}  // namespace hone
