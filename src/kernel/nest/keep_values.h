// Keeps values in memory of the thread: those that several loops of a row compute of the same
// elements, and those that a loop stores. Chooses no loops and no threads.
#pragma once

#include "kernel/nest/lower.h"

namespace hone {

// For consecutive loops of a block in which each thread runs the same iterations: a value that
// several of them compute of the same element is computed by the first one and kept in memory of
// the thread. The iterations are unrolled, so that it is held in registers. Changes nothing if it
// needs more than the registers hold.
void keep_values(Block&, Kernel&, Lowering&);

// For loops of `turns` iterations only: what several of them load is kept in memory of scope
// spread, while a thread needs at most `most_bytes` for it. What they compute from it they compute
// again. Returns the bytes that a thread needs.
std::int64_t keep_loads(Block&, Kernel&, Lowering&, std::int64_t turns, std::int64_t most_bytes);

// A compiler that cannot tell whether a store changes what is loaded next waits for each load of a
// loop in turn. So a loop of few iterations that loads and stores keeps the values to store, and a
// second loop after it stores them.
void store_last(Block&, Kernel&, Lowering&);

}  // namespace hone
