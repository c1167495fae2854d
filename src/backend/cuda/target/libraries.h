// Library calls that can compute parts of a group. Does not need the libraries: whether a machine
// can run a proposal is found out when it is tried.
#pragma once

#include <string_view>
#include <vector>

#include "codegen/target.h"

namespace hone::cuda {

inline constexpr std::string_view cublaslt_name = "cublaslt", cudnn_name = "cudnn";

// A library's best algorithm depends on the operands, so several proposals are offered and the
// fastest is found by measuring.
std::vector<Proposal> library_proposals(const GroupSpec&, const TargetInfo&);

}  // namespace hone::cuda
