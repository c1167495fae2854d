// Contractions and convolutions on machines whose threads run in groups: the group keeps tiles of
// both operands in the memory it shares, each thread a tile of the result in registers. A
// convolution is a contraction over its window, gathered while the left tile is filled.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one contraction or convolution, in one kernel. Nothing when the
// group is not of that form, or the machine has no groups. Tuning: `tile_m`, `tile_n`, `tile_k` of
// a group; `rows`, `columns` of a thread.
std::optional<Candidate> group_contraction_candidate(const GroupSpec&, const TargetInfo&,
                                                     const Tuning& = {});

// Tunings worth a trial, the default first; empty when the group is not of that form.
std::vector<Tuning> group_contraction_space(const GroupSpec&, const TargetInfo&);

}  // namespace hone
