// What a kernel tells the machine about its memory: results too large for the caches are written
// past them, and the rows of the next turn are fetched while this one computes. Changes no number.
#pragma once

#include "kernel/kernel.h"
#include "target/target_info.h"

namespace hone {

// `body` is the finished nest of the kernel, whose params get their `streams_from`.
void add_memory_hints(Kernel&, Block& body, const TargetInfo&);

}  // namespace hone
