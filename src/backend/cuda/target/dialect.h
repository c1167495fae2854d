// CUDA C++ as a dialect of the one writer of kernels. No headers: NVRTC knows the functions of
// <math.h> by itself, and including CUDA's would cost more than compiling a kernel.
#pragma once

#include "codegen/c/dialect.h"

namespace hone::cuda {

extern const c::Dialect cuda_cpp;

}  // namespace hone::cuda
