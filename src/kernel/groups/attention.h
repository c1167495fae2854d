// Attention for all machines whose threads run in groups: tiles of f32 in group memory. A group
// takes a block of queries of one matrix and iterates over blocks of keys; its threads multiply
// register tiles, and the scores of a pair of blocks pass through group memory. So memory is linear
// in the number of keys, not quadratic.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one attention, in one kernel. Returns nullopt if the group does not
// match or its rows do not fit in group memory. Tuning: `threads` of a group, `keys` of a block.
std::optional<Candidate> group_attention_candidate(const GroupSpec&, const TargetInfo&,
                                                   const Tuning& = {});
// Tunings worth trying, default first; empty if the group does not match.
std::vector<Tuning> group_attention_space(const GroupSpec&, const TargetInfo&);

}  // namespace hone
