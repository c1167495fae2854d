// Handles of cuDNN. One belongs to one stream or to one thread that makes a plan, never to two
// users at once: setting another stream makes the library touch the one before, which may be
// destroyed or in the middle of a recording.
#pragma once

#include "backend/cuda/device/context.h"
#include "backend/cuda/device/cudnn_abi.h"

namespace hone::cudnn {

// The handle of a stream, kept until release(). The context is current.
Handle handle_of(const cuda::Context&, CUstream);
// Call before the stream is destroyed, when it is idle. The context is current.
void release(const cuda::Context&, CUstream) noexcept;

// A handle for making plans while this object lives. The context is current.
class BorrowedHandle {
 public:
  explicit BorrowedHandle(const cuda::Context&);
  ~BorrowedHandle();
  BorrowedHandle(const BorrowedHandle&) = delete;
  BorrowedHandle& operator=(const BorrowedHandle&) = delete;

  Handle get() const { return handle_; }

 private:
  std::uint64_t context_;
  Handle handle_;
};

}  // namespace hone::cudnn
