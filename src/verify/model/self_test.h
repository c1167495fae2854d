// Records the results of a verified plan, so that its file can test itself. Verifies nothing.
#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"

namespace hone {

// Fills Plan::content and Plan::self_tests by running the plan: each variant that this machine can
// run, at one or two sets of sizes. Uses small samples that a variant serves unchanged; makes up
// other inputs. If no self-test can be made for a variant, SelfTest::missing says why.
// `relative_error` is what verification allowed, relative to the largest |element|; negative:
// unknown.
void record_self_tests(Plan&, std::span<const std::vector<Array>> samples,
                       double relative_error = -1);

}  // namespace hone
