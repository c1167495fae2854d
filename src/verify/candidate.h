// Whether one candidate of one group computes what the group means.
#pragma once

#include <memory>
#include <span>

#include "codegen/kernel_code.h"
#include "kernel/kernel.h"
#include "ref/compare.h"
#include "verify/sample.h"
#include "verify/trial_memory.h"

namespace hone {

// Whether the candidate computes the group: on random, negative, tiny and extreme inputs, in memory
// that ends at a page which cannot be read, its chunks in order and backwards. Every element of
// small groups, sampled ones of large groups. Of a group with symbols also at other sizes, where it
// is small and the reference can say what it means. The worst comparison.
// `rounded`: the function with roundings that the candidate adds; elements may lie where these can
// put them. Null: it adds none.
Comparison verify(const GroupSpec&, const Candidate&, KernelCode&,
                  const std::shared_ptr<TrialMemory>&, const Sizing&,
                  std::span<const Sizing> others, const Function* rounded = nullptr);

}  // namespace hone
