// Attention for machines whose threads run in groups: a group takes a block of queries of one
// matrix and meets the keys block after block, which arrive in the memory it shares while those
// before them are multiplied. Scores stay in registers; sums are rescaled when a much larger score
// comes (online softmax). So memory grows with the number of keys, not with its square.
#pragma once

#include <optional>
#include <vector>

#include "kernel/rest.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one attention of f16 or bf16, on machines whose subgroups multiply
// tiles. Nothing when the group is not of that form. Tuning: `rows` of queries of a subgroup,
// `subgroups` of a group, `keys` of a block. Blocks of keys that no query of a group may see are
// skipped; where there are many, a step that `nest` makes says first whether their values are
// finite.
std::optional<Candidate> tensor_attention_candidate(const GroupSpec&, const TargetInfo&,
                                                    const Tuning&, const NestMaker& nest);
// Tunings worth a trial, the default first; empty when the group is not of that form.
std::vector<Tuning> tensor_attention_space(const GroupSpec&, const TargetInfo&);

}  // namespace hone
