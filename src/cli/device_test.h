// Tests whether a device of this machine computes what the reference does. For users of untested
// hardware, who can send the JSON output.
#pragma once

#include <string_view>

#include "cli/commands.h"

namespace hone::cli {

// Runs every operation on one or all of its samples. `name` is "NAME" or "NAME:1": a name from
// `hone devices`, and a number if there are several. Returns the exit code: exit_differs when a
// result is wrong or an operation is refused.
int test_device(std::string_view name, bool tries_all, const Printing&);

}  // namespace hone::cli
