// The table of strategies that `hone optimize` prints.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace hone::cli {

// One line per strategy, with its time, error and memory, or why it was not compared. One is
// chosen.
std::string strategy_table(const std::vector<StrategyRecord>&);

}  // namespace hone::cli
