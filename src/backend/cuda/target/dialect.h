// CUDA C++ as a dialect of the one writer of kernels. No headers: NVRTC knows the functions of
// <math.h> by itself, and including CUDA's would cost more than compiling a kernel.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/c/dialect.h"

namespace hone::cuda {

extern const c::Dialect cuda_cpp;
// What stands behind its preamble where groups are clusters of so many blocks: HONE_BLOCKS,
// hone_meet and hone_reduce_cluster.
std::string cluster_preamble(std::uint32_t blocks);

}  // namespace hone::cuda
