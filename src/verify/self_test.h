// Records what a verified plan computes, so that its file can prove itself. Verifies nothing.
#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"

namespace hone {

// Fills Plan::content and Plan::self_tests by running the plan: each variant that this machine
// runs, at one or two sets of sizes. Small samples that a variant serves are used as they are;
// other inputs are made up. A variant whose self-test cannot be made says why in
// SelfTest::missing. `relative_error` is what verification allowed, of the largest |element|;
// negative: not known.
void record_self_tests(Plan&, std::span<const std::vector<Array>> samples,
                       double relative_error = -1);

}  // namespace hone
