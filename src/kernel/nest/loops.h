// Building blocks for ordering nests, for machines with vectors and for those with groups of
// threads: which loops are merged, which have independent iterations. Chooses nothing.
#pragma once

#include <vector>

#include "kernel/nest/lower.h"

namespace hone {

// Merges loops that together run through memory in order.
void merge_loops(Block&, Lowering&);

// True if the loop carries a dependence: a register that it keeps changing is read for more than
// joining, or memory that it writes is read, or written where an earlier iteration may have
// written. Rows of scratch that do not move with the loop are refilled in each iteration.
bool is_ordered(const Stmt& loop, const Kernel&);
// True if its iterations join into registers that are declared outside.
bool joins_outside(const Stmt& loop);

// Loops with independent iterations, around everything except what comes before them.
struct Peeled {
  Block prefix;             // before the outer loops
  std::vector<Stmt> outer;  // without bodies
  Block inner;
};
Peeled peel(Block, const Kernel&);

// Fills in the sizes that the body and its declarations mention.
void find_sizes(Kernel&, const Block& body);
// Assigns offsets to the kernel's own memory, consecutive in each scope.
void place_memory(Kernel&);

}  // namespace hone
