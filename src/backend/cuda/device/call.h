// A library function or copy of this backend, bound to its operands' sizes.
#pragma once

#include <span>

#include "backend/cuda/device/context.h"

namespace hone::cuda {

class CudaCall : public BoundCall {
 public:
  // Adds the work to the stream. The context is current.
  virtual void run(std::span<const CUdeviceptr> operands, CUstream) const = 0;
};

}  // namespace hone::cuda
