// The candidates of a group that are made of loop nests alone.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// Loop nests only: one kernel where possible, otherwise several with temporaries between.
Candidate nest_candidate(const GroupSpec&, const TargetInfo&, const Tuning& = {});
// The same with long reductions in two stages; nullopt if there are none.
std::optional<Candidate> split_candidate(const GroupSpec&, const TargetInfo&, const Tuning& = {});
// The same with sorts of long rows in pieces, which are merged; nullopt if there are none.
std::optional<Candidate> sort_candidate(const GroupSpec&, const TargetInfo&, const Tuning& = {});
std::vector<Tuning> sort_space(const GroupSpec&, const TargetInfo&);

}  // namespace hone
