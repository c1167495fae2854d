// Checks whether a candidate computes its group correctly.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include "codegen/kernel_code.h"
#include "kernel/kernel.h"
#include "ref/compare.h"
#include "verify/kernel/trial_memory.h"
#include "verify/sample.h"

namespace hone {

// The wanted sizes if the group allows them, or else others that it allows: sizes of data are made
// up, and a broadcast may need two of them to be equal. Empty if none are found.
std::optional<Sizing> allowed_sizes(const GroupSpec&, const Sizing& wanted,
                                    std::span<const Sizing> others);

// After `most`, a check of a large group tries no further inputs and sizes.
struct CheckTime {
  std::chrono::nanoseconds most;
  bool is_shortened = false;  // whether it left out some
};

// Runs the candidate on random, negative, tiny and extreme inputs, in memory that ends at an
// unreadable page, with chunks in order and backwards. Compares every element of small groups,
// sampled elements of large ones. A group with symbols is also checked at other sizes, where it is
// small and the reference can compute it. Returns the worst comparison. `rounded`: the function
// with roundings that the candidate adds; elements may differ as far as these allow. Null: it adds
// none. `time`: null if it does not matter.
Comparison verify(const GroupSpec&, const Candidate&, KernelCode&,
                  const std::shared_ptr<TrialMemory>&, const Sizing&,
                  std::span<const Sizing> others, const Function* rounded = nullptr,
                  CheckTime* time = nullptr);

}  // namespace hone
