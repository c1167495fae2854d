// Matrix products by cuBLASLt, which is opened when a plan first calls it.
#pragma once

#include <memory>

#include "backend/cuda/device/call.h"
#include "runtime/library_status.h"

namespace hone::cublaslt {

LibraryStatus library_status();

// cublaslt.matmul: operands a [b?, m, k], b [b?, k, n], with `bias` a vector [n], and the result
// [b?, m, n]; a and b may be stored transposed (transpose_a, transpose_b). Settings: bias, relu,
// gelu (with tanh) apply in this order; tf32: f32 operands hold tf32 values; algorithm: the index
// in the library's list of proposals. Throws UserError for what the library does not support.
std::unique_ptr<cuda::CudaCall> bind(std::shared_ptr<cuda::Context>, const CallRequest&);

}  // namespace hone::cublaslt
