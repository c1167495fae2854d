// One function over several devices: plans of the same function, each for one device, joined into
// one plan in which every group is computed where an assignment says, with the copies and events
// that this needs. Compiles nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "ref/evaluate.h"

namespace hone {

// Per group of a variant: the plan, and with it the device, that computes it.
using Assignment = std::vector<std::uint16_t>;

// Which groups may be computed elsewhere than by the first plan: the others are in bodies of
// control flow, or are done by other means than kernels and library calls.
std::vector<bool> movable_groups(std::span<const Plan* const> plans, std::size_t variant);

// The first plan is that of a device which shares the host's memory: inputs come from there,
// results lie there, and it runs the groups that cannot be moved. Several devices of one kind may
// have the same plan. All have a variant with the guards of each of the first one's, with one
// device; groups that are not movable stay with the first whatever the assignment says. Throws
// UserError when the plans are not of one function.
Plan spread(std::span<const Plan* const> plans, std::span<const Assignment> of_variants);

// What moving bytes between the host and a device takes.
struct CopyCost {
  double ms = 0.01, gbytes = 8;  // each copy, and 10^9 bytes per second beyond that
  double of(std::int64_t bytes) const { return ms + static_cast<double>(bytes) / gbytes * 1e-6; }
};

// Assignments worth timing, those predicted to be fastest first, by the groups' measured or
// predicted times in the plans and the costs of copies, per plan; the first one's is not used. Each
// uses at least two devices, or, where some are `wanted`, each of those and of the others only the
// first, by groups that cannot be moved. Empty when that is not possible.
std::vector<Assignment> propose_assignments(std::span<const Plan* const> plans, std::size_t variant,
                                            std::span<const CopyCost>, const Sizing& sizes,
                                            std::span<const std::uint16_t> wanted = {});

}  // namespace hone
