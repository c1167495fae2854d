// What loops of a row hold in memory of the thread: what several of them compute of the same
// elements, and what they store. Chooses no loops and no threads.
#pragma once

#include "kernel/lower.h"

namespace hone {

// Loops of a block that follow each other, of which each thread takes the same turns: a value that
// several of them compute of the same element is computed by the first of them and kept in memory
// of the thread. The turns are written out, so that registers hold it. Nothing changes where that
// is more than registers hold.
void keep_values(Block&, Kernel&, Lowering&);

// Of loops of so many turns alone: what several of them load is kept in memory of scope spread, as
// long as a thread needs no more than so many bytes. What they compute of it they compute again.
// Returns the bytes that a thread needs.
std::int64_t keep_loads(Block&, Kernel&, Lowering&, std::int64_t turns, std::int64_t most_bytes);

// A compiler that cannot tell whether a store changes what is loaded next waits for each load of a
// loop in turn. So a loop of few turns that loads and stores keeps what it would store, and one
// behind it stores.
void store_last(Block&, Kernel&, Lowering&);

}  // namespace hone
