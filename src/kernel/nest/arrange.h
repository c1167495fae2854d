// The order of a nest: which loops are merged, which one is vectorized, what is kept in scratch
// rows, and how the work is cut into chunks. Depends on shapes and target only, never on threads.
#pragma once

#include "kernel/nest/lower.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// Turns lowered statements into a kernel's body; fills in chunks, scratch and sizes. `params` must
// be set. Tuning: `chunk_kib`, the work of one chunk in KiB moved; for machines whose threads run
// in groups, the tuning of arrange_groups.
void arrange(Kernel&, Lowering&, Block lowered, const TargetInfo&, const Tuning& = {});
// Tunings worth trying, default first.
std::vector<Tuning> nest_space(const TargetInfo&);

}  // namespace hone
