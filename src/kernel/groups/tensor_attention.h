// Attention for machines whose threads run in groups: a group takes a block of queries of one
// matrix and iterates over blocks of keys, which are copied to group memory while the previous ones
// are multiplied. Scores stay in registers, or pass through group memory where no thread knows its
// part of a tile; sums are rescaled when a much larger score appears (online softmax). So memory is
// linear in the number of keys, not quadratic.
#pragma once

#include <optional>
#include <vector>

#include "kernel/problem/rest.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one attention of f16 or bf16, on machines whose subgroups multiply
// tiles. Returns nullopt if the group does not match. Tuning: `rows` of queries of a subgroup,
// `subgroups` of a group, `keys` of a block. Blocks of keys that no query of a group may see are
// skipped; where there are many, a step made by `nest` first determines whether their values are
// finite.
std::optional<Candidate> tensor_attention_candidate(const GroupSpec&, const TargetInfo&,
                                                    const Tuning&, const NestMaker& nest);
// Tunings worth trying, default first; empty if the group does not match.
std::vector<Tuning> tensor_attention_space(const GroupSpec&, const TargetInfo&);

}  // namespace hone
