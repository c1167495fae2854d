// Memory hints of a kernel: results too large for the caches bypass them, and the rows of the next
// iteration are prefetched while this one computes. Does not change results.
#pragma once

#include "kernel/kernel.h"
#include "target/target_info.h"

namespace hone {

// `body` is the kernel's finished nest; sets `streams_from` of its params.
void add_memory_hints(Kernel&, Block& body, const TargetInfo&);

}  // namespace hone
