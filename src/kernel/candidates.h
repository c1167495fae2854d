// The ways to compute a group with kernels of our own. Libraries are another matter.
#pragma once

#include <vector>

#include "kernel/kernel.h"
#include "target/target_info.h"

namespace hone {

// At least one, the one predicted to be the fastest first. One is in plain loop nests.
// Throws UserError for an operation that no kernel can compute (control flow, host operations).
std::vector<Candidate> generated_candidates(const GroupSpec&, const TargetInfo&);

// In loop nests alone: one kernel where possible, otherwise several with temporaries between.
Candidate nest_candidate(const GroupSpec&, const TargetInfo&);

}  // namespace hone
