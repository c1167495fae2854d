// Whether a plan gives the same bits whatever ran before, wherever its memory lies and however many
// threads work.
#pragma once

#include <memory>
#include <vector>

#include "runtime/session.h"

namespace hone {

// Inputs, and what a session gave for them.
struct Repeat {
  std::vector<Array> inputs, results;
};

inline constexpr int repeat_threads[] = {1, 2, 4, 7, 16};

// On one thread runs all again from the last to the first, so that each comes after another with
// other sizes and contents, and the one of least bytes before and after these. On more threads runs
// the one of most bytes, the last so that each thread computes a part of every launch, and the one
// of least. Inputs are copied to other places, arena and scratch filled with a pattern before each
// run, and results overwritten after it. Throws UserError that names the first result whose bits
// differ.
void check_repeats(const std::shared_ptr<const Executable>&, const std::vector<Repeat>&);

}  // namespace hone
