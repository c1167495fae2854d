// Memory that a run needs, printed before the first run; and memory that the process uses, printed
// after it.
#pragma once

#include <span>

#include "base/json.h"
#include "cli/run/runner.h"

namespace hone::cli {

// For these inputs; null for the interpreter, which has no plan.
Json memory_json(Runner&, std::span<const Array> inputs);
// {"rss": ..., "peak_rss": ...}
Json resident_json();

// Prints to stdout.
void tell_memory(const Json& memory);
void tell_resident(const Json& resident);

}  // namespace hone::cli
