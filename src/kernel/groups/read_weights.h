// Reads of weights at the start of a group's threads. No launch of a run changes weights, so a
// machine that starts a launch before the previous one has finished can read them meanwhile.
#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace hone {

// Moves reads of weights to the start of the group. In kernels without tiles: into memory of the
// thread, if registers hold all that a thread reads of a weight, and prefetches of them are
// dropped. In others: asynchronous copies of the first steps. Sets `is_weight` of the parameters if
// something is then read first. Leaves kernels of many groups as they are.
// `is_weight`: of each parameter, whether it is known before the run.
void read_weights_first(Kernel&, const std::vector<bool>& is_weight);

// The number of statements at the start of a group that need nothing that another launch of the run
// writes; 0 if they read no weights and prefetch nothing.
std::size_t independent_statements(const Kernel&, const Block& group);

}  // namespace hone
