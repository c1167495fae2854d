// Reads of weights at the start of a group's threads. No launch of a run changes weights, so a
// machine that starts a launch before the previous one has finished can read them meanwhile.
#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace hone {

// Moves reads of weights to the start of the group, into memory of the thread, if registers hold
// all that a thread reads of a weight; these parameters then have `is_weight`, and prefetches of
// them are dropped. Leaves kernels of many groups, and kernels with tiles, as they are.
// `is_weight`: of each parameter, whether it is known before the run.
void read_weights_first(Kernel&, const std::vector<bool>& is_weight);

// True if a statement only prefetches, or only reads parameters that have `is_weight`, into memory
// of the thread: it depends on no other launch of the run.
bool reads_only_weights(const Kernel&, const Stmt&);

}  // namespace hone
