// Products of few rows with a large matrix, as in a decoding step, for machines whose threads run
// in groups: the matrix is read once, in vectors, straight into registers, by enough threads to
// keep memory busy. Writes no tiles.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one product of at most a few rows, in one kernel. Returns nullopt
// if the group does not match. Tuning: `threads` of a group, `vectors` of the matrix side by side,
// `unroll`: how many of them a thread reads at once.
std::optional<Candidate> few_row_product_candidate(const GroupSpec&, const TargetInfo&,
                                                   const Tuning&);
// Tunings worth trying, default first; empty if the group does not match.
std::vector<Tuning> few_row_product_space(const GroupSpec&, const TargetInfo&);

}  // namespace hone
