// NVIDIA GPUs as targets: compiles kernels to CUDA C++, and with NVRTC to cubins. Does not need a
// GPU.
#pragma once

#include <memory>

#include "backend/cuda/target/libraries.h"
#include "codegen/target.h"

namespace hone::cuda {

// By compute capability; "native" is this machine's GPU, or sm_90 without one.
inline constexpr std::string_view target_names[] = {"native", "sm_75",  "sm_80",  "sm_86", "sm_89",
                                                    "sm_90",  "sm_100", "sm_103", "sm_120"};

inline constexpr std::string_view library_names[] = {cublaslt_name, cudnn_name};

std::unique_ptr<Target> make_target(std::string_view);

}  // namespace hone::cuda
