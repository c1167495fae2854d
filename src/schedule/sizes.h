// The sizes of a body: its symbols stand for those of what is passed to it.
#pragma once

#include <span>

#include "ir/function.h"
#include "plan/plan.h"

namespace hone {

// The body with every symbol that is a whole size of a parameter replaced by the size of the
// argument; symbols bound nowhere are the caller's. The body itself when nothing changes.
Function with_sizes(const Function& body, std::span<const View> arguments);

}  // namespace hone
