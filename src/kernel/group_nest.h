// Loop nests for machines whose threads run in groups: one thread for each element, or one group
// for each row of a reduction. The counterpart of arrange.h; not for contractions.
#pragma once

#include "kernel/lower.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// Turns what was lowered into a kernel of groups; fills in chunks, scratch and sizes. `params` must
// be filled in. Tuning: `threads` of a group; `rows`: 1 for a group for each row, 0 for a thread.
void arrange_groups(Kernel&, Lowering&, Block lowered, const TargetInfo&, const Tuning& = {});

// Tunings worth a trial, the default first.
std::vector<Tuning> group_nest_space(const TargetInfo&);

}  // namespace hone
