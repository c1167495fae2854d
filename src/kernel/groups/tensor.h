// Contractions and convolutions of narrow floats on machines whose subgroups multiply tiles of 16 x
// 8 x 16: the group keeps tiles of both operands in group memory, in their own dtype, and loads the
// next ones into registers while it multiplies.
#pragma once

#include <optional>
#include <vector>

#include "kernel/problem/rest.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one contraction or convolution of f16 or bf16, in one kernel.
// Returns nullopt if the group does not match or the machine has no such instructions. Tuning:
// `tile_m`, `tile_n`, `tile_k` of a group; `rows`, `columns` of a subgroup. Weights are packed by a
// step from `nest`.
std::optional<Candidate> group_tensor_candidate(const GroupSpec&, const TargetInfo&, const Tuning&,
                                                const NestMaker& nest);

// Tunings worth trying, default first; empty if the group does not match.
std::vector<Tuning> group_tensor_space(const GroupSpec&, const TargetInfo&);

}  // namespace hone
