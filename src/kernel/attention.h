// Attention for machines of register tiles: a block of queries meets the keys block after block.
// The scores of one pair of blocks stay in scratch; the largest score and the sum of each row, and
// the mixture of values, are carried along and rescaled when a larger score comes (online softmax).
// So memory grows with the number of keys, not with its square.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one attention: a step that packs the keys, one that packs the
// values where they cannot be read in place, and the main step. Nothing when the group is not of
// that form, sums in something else than f32, or has rows of unknown or great length. Tuning:
// `queries` of a chunk, `keys` of a block, `rows` and `columns` of the register tile.
std::optional<Candidate> attention_candidate(const GroupSpec&, const TargetInfo&,
                                             const Tuning& = {});
// Tunings worth a trial, the default first; empty when the group is not of that form.
std::vector<Tuning> attention_space(const GroupSpec&, const TargetInfo&);

}  // namespace hone
