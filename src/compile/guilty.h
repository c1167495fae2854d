// Which pass changes what a function means: asked when a plan was refused.
#pragma once

#include <string>
#include <vector>

#include "compile/pipeline.h"
#include "ir/function.h"

namespace hone {

// A text for the end of the refusal. The passes run on `narrowed`, the function for the sizes that
// its guards let in; what each leaves is evaluated by the reference and held against the function.
// Gives up after half a minute, and says so.
std::string guilty_pass(const Function&, const Function& narrowed, const PassOptions&,
                        const std::vector<Array>& inputs);

}  // namespace hone
