// Attention for machines with register tiles: a block of queries iterates over blocks of keys. The
// scores of one pair of blocks stay in scratch; the maximum score and sum of each row and the
// weighted values are carried along and rescaled when the maximum grows (online softmax). So memory
// is linear in the number of keys, not quadratic.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one attention: a step that packs the keys, one that packs the
// values if they cannot be read in place, and the main step. Returns nullopt if the group does not
// match, does not accumulate in f32, or has rows of unknown or great length. Tuning: `queries` of a
// chunk, `keys` of a block, `rows` and `columns` of the register tile.
std::optional<Candidate> attention_candidate(const GroupSpec&, const TargetInfo&,
                                             const Tuning& = {});
// Tunings worth trying, default first; empty if the group does not match.
std::vector<Tuning> attention_space(const GroupSpec&, const TargetInfo&);

}  // namespace hone
