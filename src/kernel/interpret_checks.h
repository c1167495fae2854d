// What the interpreter of kernels looks for.
#pragma once

namespace hone {

// Beyond what is always: accesses outside of memory, statements of a group that
// some of its threads do not reach, copies that are used before they are waited for.
struct InterpretChecks {
  // Two threads, one element of group memory, at least one of them writes, no barrier between.
  bool group_races = true;
  // The same for written parameters, and between iterations of the grid.
  bool param_races = false;
  // Memory of the group or of the thread is read that was never written.
  bool unwritten = false;
};

}  // namespace hone
