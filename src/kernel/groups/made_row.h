// Products whose left operand is one row that has to be computed first, such as a norm: each group
// of threads computes the whole row in its own memory and then multiplies, in one kernel.
#pragma once

#include <functional>
#include <optional>

#include "kernel/kernel.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// Returns nullopt if the group does not match, or the row does not fit in the group's memory.
// Tuning: as for the product, see few_row_product.h. `make_nest` builds what makes the row.
std::optional<Candidate> made_row_candidate(
    const GroupSpec&, const TargetInfo&, const Tuning&,
    const std::function<Candidate(const GroupSpec&, const Tuning&)>& make_nest);

// One kernel that runs `first` in each of its groups, and then `second`. `first` has one group, of
// as many threads, and its parameter `made` is what `second` reads as its parameter `read`; that
// becomes memory of the group. Parameters: those of `second`, then those of `first`, without these
// two. Returns nullopt for kernels that cannot be joined this way.
std::optional<Kernel> joined_in_groups(const Kernel& first, int made, const Kernel& second,
                                       int read);

}  // namespace hone
