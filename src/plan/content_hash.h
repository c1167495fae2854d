// The hash by which a plan is known to compute what it computed when it was verified.
#pragma once

#include "base/hash.h"
#include "plan/plan.h"

namespace hone {

// Hash of everything that a run reads: steps, buffers, guards, code, weights. Excludes times and
// names of strategies, so that compiling again gives the same hash.
Hash128 content_hash(const Plan&);
// The same hash for the plan that results from writing and reading this one.
Hash128 content_hash_when_read(const Plan&);

}  // namespace hone
