// One GPU of this process: its primary context, which PyTorch and the CUDA runtime share, and its
// memory pool. A kernel error destroys the context and, with most drivers, every later context of
// the process.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "backend/cuda/device/memory_split.h"
#include "backend/cuda/driver/driver.h"
#include "base/device_lost.h"
#include "runtime/device.h"

namespace hone::cuda {

class Context {
 public:
  // This process's context, created at first use. Throws UserError if there is no device, or if the
  // driver does not create a new context after an error destroyed the last one.
  static std::shared_ptr<Context> open(int ordinal);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Unique in this process, even when one context replaces another.
  std::uint64_t id() const { return id_; }
  int ordinal() const { return ordinal_; }
  CUcontext handle() const { return handle_; }
  CUdevice device() const { return device_; }
  int capability() const { return capability_; }
  const std::string& model() const { return model_; }
  const Multiprocessors& multiprocessors() const { return multiprocessors_; }

  // Throws UserError with the call and the error. After an error that destroys the context, every
  // later call fails with the first message; `during` says what was running.
  void check(CUresult, const char* call, const std::string& during = "");
  bool is_lost() const { return is_lost_.load(std::memory_order_acquire); }
  void refuse_if_lost() const;

  CUdeviceptr alloc(std::size_t bytes);
  void free(CUdeviceptr) noexcept;

 private:
  explicit Context(int ordinal);

  static inline std::atomic<std::uint64_t> next_id_ = 1;
  const std::uint64_t id_ = next_id_++;
  int ordinal_ = 0, capability_ = 0;
  CUdevice device_ = 0;
  CUcontext handle_ = nullptr;
  CUmemoryPool pool_ = nullptr;
  CUstream memory_stream_ = nullptr;
  std::string model_;
  Multiprocessors multiprocessors_;
  std::atomic<bool> is_lost_ = false;
  mutable std::mutex mutex_;
  std::string loss_;
};

// Makes the context current on this thread while it lives.
class Scope {
 public:
  explicit Scope(const Context& c) {
    check(driver().cuCtxPushCurrent(c.handle()), "cuCtxPushCurrent");
  }
  ~Scope() {
    CUcontext old = nullptr;
    driver().cuCtxPopCurrent(&old);
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
};

inline CUdeviceptr address(DeviceMemory m) {
  return static_cast<CUdeviceptr>(m.handle) + static_cast<CUdeviceptr>(m.offset);
}

}  // namespace hone::cuda
