// Gives a function for one batch the inputs of several: each is computed as if it were alone.
#pragma once

#include <string>
#include <vector>

#include "ir/function.h"

namespace hone {

struct Rebatched {
  Function function;
  std::vector<std::string> notes;  // about results, one line each
};

// The parameters that `has_batch` marks get `count` times their first size: rows of the first
// batch, rows of the second, and so on; the others stay, and all batches share them. A result keeps
// the rows in order along its first axis, or along its first axis of size 1 if a batch is one row;
// else it gets a new first axis. Throws UserError naming the first node for which no rule shows
// that the batches stay apart.
Rebatched rebatch(const Function&, const std::vector<bool>& has_batch, std::int64_t count);

}  // namespace hone
