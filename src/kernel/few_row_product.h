// Products of few rows with a large matrix, as in a step of decoding, for machines whose threads
// run in groups: the matrix is read once, in vectors, by as many threads as keep its bytes on their
// way, straight into registers. Writes no tiles.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one product of at most a few rows, in one kernel. Nothing when the
// group is not of that form. Tuning: `threads` of a group, `vectors` of the matrix side by side,
// `unroll`: how many of them a thread reads at once.
std::optional<Candidate> few_row_product_candidate(const GroupSpec&, const TargetInfo&,
                                                   const Tuning&);
// Tunings worth a trial, the default first; empty when the group is not of that form.
std::vector<Tuning> few_row_product_space(const GroupSpec&, const TargetInfo&);

}  // namespace hone
