// Whether a device of this machine computes what the reference does: for people with a machine that
// nobody has tried before, whose JSON they can send.
#pragma once

#include <string_view>

#include "cli/commands.h"

namespace hone::cli {

// Every operation on its samples, one or all. `name` is "NAME" or "NAME:1": a name of `hone
// devices`, and the number of one of several. Returns the exit code: exit_differs when a result is
// wrong or an operation is refused.
int test_device(std::string_view name, bool tries_all, const Printing&);

}  // namespace hone::cli
