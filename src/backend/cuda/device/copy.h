// Copies of elements with strides, by a kernel that the driver translates from PTX.
#pragma once

#include "backend/cuda/device/call.h"

namespace hone::cuda {

// As the kernel of strided_copy.cu takes it.
struct CopyAxes {
  static constexpr std::size_t most = 8;
  long long dims[most], to[most], from[most];
  long long count;
  int axes, element_bytes;
};

class CudaCopy final : public CudaCall {
 public:
  // Throws UserError for more axes than there can be after joining.
  CudaCopy(std::shared_ptr<Context>, const StridedCopy&);
  // From the first operand to the second.
  void run(std::span<const CUdeviceptr> operands, CUstream) const override;

 private:
  std::shared_ptr<Context> context_;
  CUfunction function_ = nullptr;
  CopyAxes axes_{};
  std::size_t contiguous_bytes_ = 0;  // not 0: one plain copy
};

}  // namespace hone::cuda
