// What `hone optimize` prints of the strategies that it timed.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace hone::cli {

// A line for each, with its time, error and memory, or why it was not in the race. One is chosen.
std::string strategy_table(const std::vector<StrategyRecord>&);

}  // namespace hone::cli
