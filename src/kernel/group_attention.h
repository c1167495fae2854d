// Attention for all machines whose threads run in groups: tiles of f32 in the memory that a group
// shares. A group takes a block of queries of one matrix and meets the keys block after block; its
// threads multiply register tiles, and the scores of a pair of blocks pass through shared memory.
// So memory grows with the number of keys, not with its square.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one attention, in one kernel. Nothing when the group is not of that
// form, or its rows do not fit the memory of a group. Tuning: `threads` of a group, `keys` of a
// block.
std::optional<Candidate> group_attention_candidate(const GroupSpec&, const TargetInfo&,
                                                   const Tuning& = {});
// Tunings worth a trial, the default first; empty when the group is not of that form.
std::vector<Tuning> group_attention_space(const GroupSpec&, const TargetInfo&);

}  // namespace hone
