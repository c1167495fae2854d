// What orders of nests are made of, for machines with vectors and for those with groups of threads:
// which loops become one, which have independent iterations. Chooses nothing.
#pragma once

#include <vector>

#include "kernel/lower.h"

namespace hone {

// Loops that together run through memory in order become one.
void merge_loops(Block&, Lowering&);

// A turn of the loop needs what an earlier turn did: a register it goes on changing is read for
// more than joining, memory that it writes is read, or written where an earlier turn may have. Rows
// of scratch that do not move with the loop are filled anew in each turn.
bool is_ordered(const Stmt& loop, const Kernel&);
// Its turns join into registers that are declared outside.
bool joins_outside(const Stmt& loop);

// Loops whose turns are independent, around everything but what comes before them.
struct Peeled {
  Block prefix;             // before the outer loops
  std::vector<Stmt> outer;  // without bodies
  Block inner;
};
Peeled peel(Block, const Kernel&);

// Fills in the sizes that the body and what is declared for it mention.
void find_sizes(Kernel&, const Block& body);
// Gives the kernel's own memory its places: one behind the other in each scope.
void place_memory(Kernel&);

}  // namespace hone
