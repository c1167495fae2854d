// Contractions and convolutions on machines whose threads run in groups: the group keeps tiles of
// both operands in group memory, each thread a tile of the result in registers. A convolution is a
// contraction over its window, gathered while the left tile is filled.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one contraction or convolution, in one kernel. Returns nullopt if
// the group does not match or the machine has no groups. Tuning: `tile_m`, `tile_n`, `tile_k` of a
// group; `rows`, `columns` of a thread.
std::optional<Candidate> group_contraction_candidate(const GroupSpec&, const TargetInfo&,
                                                     const Tuning& = {});

// Tunings worth trying, default first; empty if the group does not match.
std::vector<Tuning> group_contraction_space(const GroupSpec&, const TargetInfo&);

}  // namespace hone
