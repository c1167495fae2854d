// Whether one candidate of one group computes what the group means.
#pragma once

#include <memory>

#include "compile/kernels.h"
#include "compile/sample.h"
#include "compile/trial_memory.h"
#include "kernel/kernel.h"
#include "ref/compare.h"

namespace hone {

// Whether the candidate computes the group, on random and on extreme inputs: every element of small
// groups, sampled ones of large groups. The worst comparison.
Comparison verify(const GroupSpec&, const Candidate&, KernelCompiler&,
                  const std::shared_ptr<TrialMemory>&, const std::shared_ptr<ThreadPool>&,
                  const Sizing&);

}  // namespace hone
