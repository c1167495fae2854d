// The ways to compute a group with kernels of our own. Libraries are another matter.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// Makes candidates of one form.
struct KernelForm {
  std::string_view name;  // of its candidates
  // Nothing when the group is not of that form. What the tuning does not name, the form chooses.
  std::optional<Candidate> (*build)(const GroupSpec&, const TargetInfo&, const Tuning&);
  // Tunings worth a trial, the default first; empty when the group is not of that form.
  std::vector<Tuning> (*space)(const GroupSpec&, const TargetInfo&);
};

// Those for such a machine. Plain loop nests, which fit every group, are the last.
std::span<const KernelForm> kernel_forms(const TargetInfo&);

// What a form makes, for the alignment that the group states.
std::optional<Candidate> built(const KernelForm&, const GroupSpec&, const TargetInfo&,
                               const Tuning&);

// What they make without a tuning: at least one, the one predicted to be the fastest first. Throws
// UserError for an operation that no kernel can compute (control flow, host operations).
std::vector<Candidate> generated_candidates(const GroupSpec&, const TargetInfo&);

// In loop nests alone: one kernel where possible, otherwise several with temporaries between.
Candidate nest_candidate(const GroupSpec&, const TargetInfo&, const Tuning& = {});
// The same with long reductions in two stages; nothing when there are none.
std::optional<Candidate> split_candidate(const GroupSpec&, const TargetInfo&, const Tuning& = {});
// The same with sorts of long rows in pieces, which are merged; nothing when there are none.
std::optional<Candidate> sort_candidate(const GroupSpec&, const TargetInfo&, const Tuning& = {});
std::vector<Tuning> sort_space(const GroupSpec&, const TargetInfo&);

}  // namespace hone
