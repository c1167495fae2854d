// What a run needs, told before the first run; what the process then has, told after.
#pragma once

#include <span>

#include "base/json.h"
#include "cli/run/runner.h"

namespace hone::cli {

// For these inputs; null for the interpreter, which plans nothing.
Json memory_json(Runner&, std::span<const Array> inputs);
// {"rss": ..., "peak_rss": ...}
Json resident_json();

// To stdout.
void tell_memory(const Json& memory);
void tell_resident(const Json& resident);

}  // namespace hone::cli
