// The interpreter's loops, branches and synchronization of threads.
#pragma once

#include "kernel/interpret/program.h"

namespace hone::interpreter::control {

// Loops: to = the variable, a = its limit, jump = the length of the body + 1.
void loop_begin(Frame&, const Instr&);
void loop_next(Frame&, const Instr&);
void grid_begin(Frame&, const Instr&);
void grid_next(Frame&, const Instr&);
// Each lane has its own limit; b = space for a mask.
void masked_begin(Frame&, const Instr&);
void masked_next(Frame&, const Instr&);
// Iterations become lanes; to = the variable of lane 0.
void strip_begin(Frame&, const Instr&);
void strip_next(Frame&, const Instr&);
void grid_strip_begin(Frame&, const Instr&);
void grid_strip_next(Frame&, const Instr&);
void group_begin(Frame&, const Instr&);
void group_end(Frame&, const Instr&);

// Branches: a = condition.
void skip_unless(Frame&, const Instr&);
void skip(Frame&, const Instr&);
void mask_if(Frame&, const Instr&);  // to = space for the mask, b = for the condition
void mask_else(Frame&, const Instr&);
void mask_end(Frame&, const Instr&);

void meet(Frame&, const Instr&);  // checks that all threads are here
void barrier(Frame&, const Instr&);
void near_barrier(Frame&, const Instr&);  // of neighbours; checks that all or none of them are here
void end(Frame&, const Instr&);

}  // namespace hone::interpreter::control
