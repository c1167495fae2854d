// Delta debugging: finds a smaller function that still shows the fault of a case.
#pragma once

#include <functional>

#include "verify/reduce/case.h"

namespace hone {

// Whether a case still shows the fault. Must not throw.
using Shows = std::function<bool(const Case&)>;

// Drops runs and results, replaces nodes by parameters, removes nodes, makes sizes fixed and small,
// and empties attributes, until no such change still shows the fault or `most` cases were tried.
Case reduced(Case, const Shows&, int most = 4000);

// A copy with the given results, without the nodes and checks that no result needs; with
// `drop_params` also without unused parameters. Types are inferred again.
Function rebuilt(const Function&, const Values& results, bool drop_params);

}  // namespace hone
