// GPUs of NVIDIA: kernels to CUDA C++, and through NVRTC to cubins. Needs no GPU.
#pragma once

#include <memory>

#include "backend/cuda/target/libraries.h"
#include "codegen/target.h"

namespace hone::cuda {

// By compute capability; the first is that of this machine's GPU, sm_90 where there is none.
inline constexpr std::string_view target_names[] = {"native", "sm_75",  "sm_80",  "sm_86", "sm_89",
                                                    "sm_90",  "sm_100", "sm_103", "sm_120"};

inline constexpr std::string_view library_names[] = {cublaslt_name, cudnn_name};

std::unique_ptr<Target> make_target(std::string_view);

}  // namespace hone::cuda
