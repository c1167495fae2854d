// The order of a nest: which loops become one, which one runs in vectors, what is kept in scratch
// rows, and how the work is cut into chunks. Depends on shapes and target only, never on threads.
#pragma once

#include "kernel/lower.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// Turns what was lowered into a kernel's body; fills in chunks, scratch and sizes. `params` must be
// filled in. Tuning: `chunk_kib`, the work of one chunk in 1,024 bytes moved; for machines whose
// threads run in groups, that of arrange_groups.
void arrange(Kernel&, Lowering&, Block lowered, const TargetInfo&, const Tuning& = {});
// Tunings worth a trial, the default first.
std::vector<Tuning> nest_space(const TargetInfo&);

}  // namespace hone
