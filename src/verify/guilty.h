// Which pass changes what a function means: asked when a plan was refused.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/function.h"
#include "pass/rewrite.h"
#include "type/array.h"

namespace hone {

// What a pass that changed something left.
struct Stage {
  std::string_view pass;
  const RuleLog& rules;
  const Function& after;
};

// A text for the end of the refusal. What each stage left is evaluated by the reference and held
// against the function, in order. Gives up after half a minute, and says so.
std::string guilty_pass(const Function&, std::span<const Stage>, const std::vector<Array>& inputs);

}  // namespace hone
