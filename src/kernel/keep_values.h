// What several loops of a row compute of the same elements. Chooses no loops and no threads.
#pragma once

#include "kernel/lower.h"

namespace hone {

// Loops of a block that follow each other, of which each thread takes the same turns: a value that
// several of them compute of the same element is computed by the first of them and kept in memory
// of the thread. The turns are written out, so that registers hold it. Nothing changes where that
// is more than registers hold.
void keep_values(Block&, Kernel&, Lowering&);

// Of loops of so many turns alone: what they load is kept in memory of that scope, however much it
// is. What they compute of it they compute again.
void keep_loads(Block&, Kernel&, Lowering&, std::int64_t turns, MemoryScope);

}  // namespace hone
