// Optional checks of the interpreter of kernels.
#pragma once

namespace hone {

// Always checked: accesses outside of memory, group statements that some threads do not reach,
// copies used before they are waited for. These come on top:
struct InterpretChecks {
  // Two threads access one element of group memory, at least one writes, with no barrier between.
  bool group_races = true;
  // The same for written parameters, also between iterations of the grid.
  bool param_races = false;
  // Memory of the group or of the thread is read before it is written.
  bool unwritten = false;
};

}  // namespace hone
