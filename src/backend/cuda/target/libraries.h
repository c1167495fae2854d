// What NVIDIA's libraries can compute of a group. Needs none of them: which proposals a machine can
// run is seen when they are tried.
#pragma once

#include <string_view>
#include <vector>

#include "codegen/target.h"

namespace hone::cuda {

inline constexpr std::string_view cublaslt_name = "cublaslt", cudnn_name = "cudnn";

// The libraries' first proposals differ by what the operands are, so several are offered; which one
// is fastest is measured.
std::vector<Proposal> library_proposals(const GroupSpec&, const TargetInfo&);

}  // namespace hone::cuda
