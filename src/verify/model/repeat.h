// Checks that a plan gives the same bits regardless of earlier runs, memory addresses, the number
// of threads and other sessions.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "runtime/session.h"

namespace hone {

// Inputs, and a session's results for them.
struct Repeat {
  std::vector<Array> inputs, results;
};

inline constexpr int repeat_threads[] = {1, 2, 4, 7, 16};

// On one thread, runs all again in reverse order, so that each follows one with other sizes and
// contents, and the one of fewest bytes before and after these. On several threads, runs the one of
// most bytes, the last one such that each thread computes a part of every launch, and the one of
// fewest bytes. Inputs are copied to other addresses, arena and scratch are filled with a pattern
// before each run, and results are overwritten after it. Then, on devices that share the host's
// memory: the smallest, the largest and the smallest again in a session that keeps everything,
// where freed memory cannot be accessed; and two sessions at once, one of which runs between the
// steps of the other, then each on a thread of its own. Throws UserError that names the first
// result whose bits differ, other than those of a NaN. Returns the numbers of threads: after
// `most_time`, only the last of those left.
std::vector<int> check_repeats(
    const std::shared_ptr<const Executable>&, const std::vector<Repeat>&,
    std::chrono::nanoseconds most_time = std::chrono::nanoseconds::max());

}  // namespace hone
