// The sizes of a body: binds its symbols to the sizes of its arguments.
#pragma once

#include <span>

#include "ir/function.h"
#include "plan/plan.h"

namespace hone {

// The body with every symbol that is the size of a parameter replaced by the size of the argument;
// symbols bound nowhere belong to the caller. Returns the body itself if nothing changes.
Function with_sizes(const Function& body, std::span<const View> arguments);

}  // namespace hone
