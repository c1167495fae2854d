// The order of a nest: which loops become one, which one runs in vectors, what is kept in scratch
// rows, and how the work is cut into chunks. Depends on shapes and target only, never on threads.
#pragma once

#include "kernel/lower.h"
#include "target/target_info.h"

namespace hone {

// Turns what was lowered into a kernel's body; fills in chunks, scratch and sizes. `params` must be
// filled in.
void arrange(Kernel&, Lowering&, Block lowered, const TargetInfo&);

// Loops that together run through memory in order become one.
void merge_loops(Block&, Lowering&);

}  // namespace hone
