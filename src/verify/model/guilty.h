// Finds the pass that changes the meaning of a function. Used when a plan was refused.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/function.h"
#include "pass/rewrite.h"
#include "type/array.h"

namespace hone {

// The function after a pass that changed something.
struct Stage {
  std::string_view pass;
  const RuleLog& rules;
  const Function& after;
};

// Returns text to append to the error message. Evaluates each stage with the reference, in order,
// and compares it with the function. Gives up after half a minute, and says so.
std::string guilty_pass(const Function&, std::span<const Stage>, const std::vector<Array>& inputs);

}  // namespace hone
