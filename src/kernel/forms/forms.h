// The ways to compute a group with generated kernels. Libraries are handled elsewhere.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// Builds candidates of one form.
struct KernelForm {
  std::string_view name;  // of its candidates
  // Returns nullopt if the group does not match. The form chooses what the tuning does not name.
  std::optional<Candidate> (*build)(const GroupSpec&, const TargetInfo&, const Tuning&);
  // Tunings worth trying, default first; empty if the group does not match.
  std::vector<Tuning> (*space)(const GroupSpec&, const TargetInfo&);
};

// The forms for such a machine. Plain loop nests, which fit every group, come last.
std::span<const KernelForm> kernel_forms(const TargetInfo&);

// The form's candidate, for the alignment that the group states.
std::optional<Candidate> built(const KernelForm&, const GroupSpec&, const TargetInfo&,
                               const Tuning&);

// Candidates of all forms with default tuning: at least one, predicted fastest first. Throws
// UserError for an operation that no kernel can compute (control flow, host operations).
std::vector<Candidate> generated_candidates(const GroupSpec&, const TargetInfo&);

}  // namespace hone
