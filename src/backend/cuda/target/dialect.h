// CUDA C++ as a dialect of the C kernel writer. Includes no headers: NVRTC has the functions of
// <math.h> built in, and including CUDA's headers would cost more than compiling a kernel.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/c/dialect.h"

namespace hone::cuda {

extern const c::Dialect cuda_cpp;
// Follows the preamble if groups are clusters of `blocks` blocks: defines HONE_BLOCKS, hone_meet
// and hone_reduce_cluster.
std::string cluster_preamble(std::uint32_t blocks);

}  // namespace hone::cuda
