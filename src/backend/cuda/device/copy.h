// Strided copies by a kernel that the driver compiles from PTX.
#pragma once

#include "backend/cuda/device/call.h"

namespace hone::cuda {

// The argument of the kernel in strided_copy.cu.
struct CopyAxes {
  static constexpr std::size_t most = 8;
  long long dims[most], to[most], from[most];
  long long count;
  int axes, element_bytes;
};

class CudaCopy final : public CudaCall {
 public:
  // Throws UserError if more than `most` axes remain after merging.
  CudaCopy(std::shared_ptr<Context>, const StridedCopy&);
  // Copies the first operand to the second.
  void run(std::span<const CUdeviceptr> operands, CUstream) const override;

 private:
  std::shared_ptr<Context> context_;
  CUfunction function_ = nullptr;
  CopyAxes axes_{};
  std::size_t contiguous_bytes_ = 0;  // if not 0: one plain copy
};

}  // namespace hone::cuda
