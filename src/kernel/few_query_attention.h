// Attention of few queries, as in a step of decoding, for machines whose threads run in groups: a
// thread has a vector of every so-many-th key and value, so each is read once, and heads that share
// them are computed together. Few matrices have few groups, so the keys are divided between groups,
// and a second step joins what these found.
#pragma once

#include <optional>
#include <vector>

#include "kernel/rest.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one attention. Nothing when the group is not of that form, or has
// many queries. Tuning: `threads` of a group, `unroll`: keys that a thread reads at once, `parts`
// of the keys.
std::optional<Candidate> few_query_attention_candidate(const GroupSpec&, const TargetInfo&,
                                                       const Tuning&, const NestMaker&);
// Tunings worth a trial, the default first; empty when the group is not of that form.
std::vector<Tuning> few_query_attention_space(const GroupSpec&, const TargetInfo&);

}  // namespace hone
