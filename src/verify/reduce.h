// Delta debugging: the smallest function found that still shows what a case showed.
#pragma once

#include <functional>

#include "verify/case.h"

namespace hone {

// Whether a case still shows the fault. Must not throw.
using Shows = std::function<bool(const Case&)>;

// Drops runs and results, makes parameters of nodes, takes nodes out, makes sizes numbers and
// small, empties attributes, until nothing of that shows the fault any more or `most` cases were
// tried.
Case reduced(Case, const Shows&, int most = 4000);

// A copy without the nodes and checks that no result needs, with the given results; parameters that
// nothing reads go too when `drop_params`. Types are inferred again.
Function rebuilt(const Function&, const Values& results, bool drop_params);

}  // namespace hone
