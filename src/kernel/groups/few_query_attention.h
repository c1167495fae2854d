// Attention with few queries, as in a decoding step, for machines whose threads run in groups: each
// thread reads vectors of keys and values at a fixed interval, so each is read once, and heads that
// share them are computed together. Few matrices give few groups, so the keys are divided between
// groups, and a second step combines their results.
#pragma once

#include <optional>
#include <vector>

#include "kernel/problem/rest.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one attention. Returns nullopt if the group does not match or has
// many queries. Tuning: `threads` of a group, `unroll`: keys that a thread reads at once, `parts`
// of the keys.
std::optional<Candidate> few_query_attention_candidate(const GroupSpec&, const TargetInfo&,
                                                       const Tuning&, const NestMaker&);
// Tunings worth trying, default first; empty if the group does not match.
std::vector<Tuning> few_query_attention_space(const GroupSpec&, const TargetInfo&);

}  // namespace hone
