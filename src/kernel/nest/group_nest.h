// Loop nests for machines whose threads run in groups: one thread for each element, or one group
// for each row of a reduction. The counterpart of arrange.h; not for contractions.
#pragma once

#include "kernel/nest/lower.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// Turns lowered statements into a kernel of groups; fills in chunks, scratch and sizes. `params`
// must be set. Tuning: `threads` of a group; `rows`: 1 for a group per row, 0 for a thread per row.
void arrange_groups(Kernel&, Lowering&, Block lowered, const TargetInfo&, const Tuning& = {});

// Tunings worth trying, default first.
std::vector<Tuning> group_nest_space(const TargetInfo&);

}  // namespace hone
