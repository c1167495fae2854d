// A memory report as JSON, for commands and pages; sizes are in bytes.
#pragma once

#include "base/json.h"
#include "runtime/session.h"

namespace hone {

// "peak", its parts by name, and in addition "arena_lower_bound" and "reading".
Json to_json(const MemoryReport&);

}  // namespace hone
