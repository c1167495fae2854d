// Delta debugging: the smallest function found that still shows what a case showed.
#pragma once

#include <functional>

#include "test/random/generate.h"

namespace hone::fuzz {

// Whether a case still shows the fault. Must not throw.
using Shows = std::function<bool(const Case&)>;

// Drops runs and results, makes parameters of nodes, takes nodes out, makes sizes numbers and
// small, empties attributes, until nothing of that shows the fault any more or `most` cases were
// tried.
Case reduced(Case, const Shows&, int most = 4000);

}  // namespace hone::fuzz
