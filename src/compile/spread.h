// Spreads one function over several devices: joins plans of the same function, each for one device,
// into one plan that computes each group on the device that an assignment names, and adds the
// copies and events that this needs. Compiles nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "ref/evaluate.h"

namespace hone {

// Per group of a variant: the plan, and thereby the device, that computes it.
using Assignment = std::vector<std::uint16_t>;

// Which groups other plans than the first may compute: those outside of control flow bodies that
// use only kernels and library calls.
std::vector<bool> movable_groups(std::span<const Plan* const> plans, std::size_t variant);

// The first plan must be for a device that shares the host's memory: it holds inputs and results,
// and runs the groups that are not movable, whatever the assignment says. Devices of one kind may
// have the same plan. For each variant of the first plan, every other plan must have one with equal
// guards and one device. Throws UserError when the plans are not of one function.
Plan spread(std::span<const Plan* const> plans, std::span<const Assignment> of_variants);

// Cost of copies between the host and a device.
struct CopyCost {
  double ms = 0.01, gbytes = 8;  // per copy; and rate in 10^9 bytes per second
  double of(std::int64_t bytes) const { return ms + static_cast<double>(bytes) / gbytes * 1e-6; }
};

// Assignments worth timing, fastest prediction first. Predictions use the groups' times in the
// plans and the costs of copies, per plan; the first plan's cost is not used. Each assignment uses
// at least two devices; if some are `wanted`, it uses all of those, and of the others at most the
// first, for groups that cannot be moved. Empty when that is not possible.
std::vector<Assignment> propose_assignments(std::span<const Plan* const> plans, std::size_t variant,
                                            std::span<const CopyCost>, const Sizing& sizes,
                                            std::span<const std::uint16_t> wanted = {});

}  // namespace hone
