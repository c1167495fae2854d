#include "backend/cuda/device/context.h"

#include <unistd.h>

#include <map>

namespace hone::cuda {

namespace {

// After these errors the context is unusable.
bool ends_context(CUresult r) {
  switch (r) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
      return true;
    default:
      return false;
  }
}

// The errors that destroyed contexts in this process, by device, even after the context is
// released. Drivers may then refuse new contexts on every device.
class Losses {
 public:
  void note(int ordinal, const std::string& loss) {
    const std::scoped_lock lock(mutex_);
    texts_.emplace(ordinal, loss);
  }
  // The error of this device, else of another one.
  std::string before(int ordinal) {
    const std::scoped_lock lock(mutex_);
    const auto it = texts_.find(ordinal);
    if (it != texts_.end()) return it->second;
    return texts_.empty() ? std::string() : texts_.begin()->second;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::string> texts_;
};

Losses& losses() {
  static Losses it;
  return it;
}

int attribute(CUdevice device, CUdevice_attribute a) {
  int value = 0;
  HONE_CUDA(cuDeviceGetAttribute, &value, a, device);
  return value;
}

// Freed memory that the pool keeps for later allocations.
constexpr cuuint64_t kept_bytes = std::uint64_t{1} << 30;

}  // namespace

std::shared_ptr<Context> Context::open(int ordinal) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<Context>> known;
  static const ::pid_t process = ::getpid();
  if (process != ::getpid())
    throw UserError(
        "cuda: this process was forked from one that had opened the driver, which the driver does "
        "not allow; open devices after the fork only");
  const std::scoped_lock lock(mutex);
  std::weak_ptr<Context>& entry = known[ordinal];
  std::shared_ptr<Context> c = entry.lock();
  if (c && !c->is_lost()) return c;
  if (c) {
    CUdevice device = 0;
    HONE_CUDA(cuDeviceGet, &device, ordinal);
    HONE_CUDA(cuDevicePrimaryCtxReset, device);
  }
  try {
    c.reset(new Context(ordinal));
  } catch (const UserError& e) {
    const std::string loss = losses().before(ordinal);
    if (loss.empty()) throw;
    throw UserError(
        "cuda: device ", ordinal,
        " cannot be opened in this process, as its driver makes no new context after an "
        "earlier error; start a new process. The earlier error: ",
        loss);
  }
  entry = c;
  return c;
}

Context::Context(int ordinal) : ordinal_(ordinal), capability_(cuda::capability(ordinal)) {
  HONE_CUDA(cuDeviceGet, &device_, ordinal);
  char name[256] = {};
  HONE_CUDA(cuDeviceGetName, name, sizeof name - 1, device_);
  model_ = name;
  multiprocessors_ = {attribute(device_, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
                      attribute(device_, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
                      attribute(device_, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)};
  HONE_CUDA(cuDevicePrimaryCtxRetain, &handle_, device_);
  const Scope scope(*this);
  HONE_CUDA(cuDeviceGetDefaultMemPool, &pool_, device_);
  cuuint64_t kept = kept_bytes;
  HONE_CUDA(cuMemPoolSetAttribute, pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept);
  HONE_CUDA(cuStreamCreate, &memory_stream_, CU_STREAM_NON_BLOCKING);
}

Context::~Context() {
  if (!is_lost()) {
    CUcontext old = nullptr;
    driver().cuCtxPushCurrent(handle_);
    driver().cuStreamDestroy(memory_stream_);
    driver().cuCtxPopCurrent(&old);
  }
  driver().cuDevicePrimaryCtxRelease(device_);
}

void Context::check(CUresult r, const char* call, const std::string& during) {
  if (r == CUDA_SUCCESS) return;
  const std::string error = cat("cuda: device ", ordinal_, ": ", call, ": ", describe(r),
                                during.empty() ? "" : "; ", during);
  if (ends_context(r)) {
    const std::scoped_lock lock(mutex_);
    if (loss_.empty())
      loss_ = cat(
          error,
          ". What lay on that device is lost: run the plan on another one, or in a new process");
    is_lost_.store(true, std::memory_order_release);
    losses().note(ordinal_, loss_);
    throw DeviceLost(loss_);
  }
  throw UserError(error);
}

void Context::refuse_if_lost() const {
  if (!is_lost()) return;
  const std::scoped_lock lock(mutex_);
  throw DeviceLost("cuda: refused after an earlier error: ", loss_);
}

CUdeviceptr Context::alloc(std::size_t bytes) {
  refuse_if_lost();
  const Scope scope(*this);
  CUdeviceptr out = 0;
  CUresult r = driver().cuMemAllocAsync(&out, std::max<std::size_t>(bytes, 1), memory_stream_);
  if (r == CUDA_ERROR_OUT_OF_MEMORY) {
    driver().cuStreamSynchronize(memory_stream_);
    driver().cuMemPoolTrimTo(pool_, 0);
    r = driver().cuMemAllocAsync(&out, bytes, memory_stream_);
  }
  if (r == CUDA_ERROR_OUT_OF_MEMORY) {
    std::size_t free = 0, total = 0;
    driver().cuMemGetInfo(&free, &total);
    throw UserError("cuda: device ", ordinal_, " (", model_, ") cannot allocate ", bytes,
                    " bytes: ", free, " of ", total,
                    " are free; use smaller sizes or another device");
  }
  check(r, "cuMemAllocAsync");
  // Streams of all sessions may use the memory immediately.
  check(driver().cuStreamSynchronize(memory_stream_), "cuStreamSynchronize");
  return out;
}

void Context::free(CUdeviceptr p) noexcept {
  if (is_lost()) return;
  CUcontext old = nullptr;
  if (driver().cuCtxPushCurrent(handle_) != CUDA_SUCCESS) return;
  driver().cuMemFreeAsync(p, memory_stream_);
  driver().cuCtxPopCurrent(&old);
}

}  // namespace hone::cuda
