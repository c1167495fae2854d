#include "backend/cpu/device/cpu_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>

#include "backend/cpu/device/call.h"
#include "backend/cpu/device/copy.h"
#include "backend/cpu/device/loader.h"
#include "backend/cpu/device/onednn.h"
#include "backend/cpu/device/onednn_library.h"
#include "backend/cpu/isa/isa.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/large_memory.h"
#include "runtime/dlpack.h"
#include "runtime/host_memory.h"

namespace hone {

namespace {

class CpuProgram final : public LoadedCode {
 public:
  explicit CpuProgram(LoadedBinary code) : code_(std::move(code)) {}
  KernelHandle entry(std::string_view name) const override {
    return KernelHandle{reinterpret_cast<std::uintptr_t>(code_.entry(name))};
  }
  std::size_t bytes() const override { return code_.code_bytes(); }

 private:
  LoadedBinary code_;
};

// All work is finished when a call returns.
class CpuEvent final : public Event {
 public:
  void synchronize() override {}
};

struct KernelCall {
  KernelFunction function;
  void* const* operands;
  const std::int64_t* sizes;
  std::int64_t begin, end;
  void* scratch;

  void operator()() const { function(operands, sizes, begin, end, scratch); }
};

// A kernel may fault while it is being checked.
void run_chunks(const KernelCall& call) {
  FaultScope* scope = FaultScope::current();
  if (!scope) return call();
  scope->run([](void* c) { (*static_cast<const KernelCall*>(c))(); },
             const_cast<KernelCall*>(&call));
}

// Steps run one after another on the caller's thread and the pool's; a step is finished when its
// call returns.
class CpuStream final : public Stream {
 public:
  CpuStream(std::shared_ptr<ThreadPool> pool, std::shared_ptr<Allocator> allocator)
      : pool_(std::move(pool)), allocator_(std::move(allocator)) {}

  int threads() const override { return pool_ ? pool_->threads() : 1; }

  void reserve_scratch(std::size_t bytes) override {
    const std::size_t each = aligned(bytes);
    if (each <= scratch_each_) return;
    scratch_ = {};
    scratch_ = OwnedMemory(allocator_, each * static_cast<std::size_t>(threads()));
    scratch_each_ = each;
  }

  void upload(DeviceMemory to, std::span<const std::byte> from) override {
    if (!from.empty()) std::memcpy(HostMemory::address(to), from.data(), from.size());
  }
  void download(std::span<std::byte> to, DeviceMemory from) override {
    if (!to.empty()) std::memcpy(to.data(), HostMemory::address(from), to.size());
  }
  void copy(DeviceMemory to, DeviceMemory from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(HostMemory::address(to), HostMemory::address(from), bytes);
  }
  void fill(DeviceMemory to, std::byte value, std::size_t bytes) override {
    if (bytes > 0) std::memset(HostMemory::address(to), std::to_integer<int>(value), bytes);
  }

  void launch(const Launch& l) override {
    const auto function = reinterpret_cast<KernelFunction>(static_cast<std::uintptr_t>(l.entry));
    void* const* operands = addresses(l.operands);
    if (l.is_small || l.chunks == 1 || !pool_) {
      run_chunks({function, operands, l.sizes, 0, l.chunks, scratch(0, l.scratch_bytes)});
      return;
    }
    struct Job {
      const Launch& launch;
      void* const* operands;
      KernelFunction function;
      const CpuStream& stream;
    } job{l, operands, function, *this};
    pool_->run(
        l.chunks,
        [](void* context, std::int64_t begin, std::int64_t end, int thread) {
          const Job& j = *static_cast<const Job*>(context);
          run_chunks({j.function, j.operands, j.launch.sizes, begin, end,
                      j.stream.scratch(thread, j.launch.scratch_bytes)});
        },
        &job);
  }

  void call(const BoundCall& bound, std::span<const DeviceMemory> places, bool is_small) override {
    const auto& c = static_cast<const CpuCall&>(bound);
    const std::int64_t chunks = c.chunks();
    void* const* operands = addresses(places);
    if (is_small || chunks <= 1 || !pool_) {
      if (chunks > 0) c.run(operands, 0, chunks, scratch(0, c.scratch_bytes()));
      return;
    }
    Call job{c, operands, *this, {}, nullptr};
    pool_->run(chunks, &CpuStream::run_call, &job);
    if (job.error) std::rethrow_exception(job.error);
  }

  void record(Event&) override {}
  void wait(Event& e) override { e.synchronize(); }
  void synchronize() override {}

 private:
  struct Call {
    const CpuCall& call;
    void* const* operands;
    const CpuStream& stream;
    std::mutex mutex;
    std::exception_ptr error;
  };

  static void run_call(void* context, std::int64_t begin, std::int64_t end, int thread) {
    Call& c = *static_cast<Call*>(context);
    try {
      c.call.run(c.operands, begin, end, c.stream.scratch(thread, c.call.scratch_bytes()));
    } catch (...) {
      std::lock_guard lock(c.mutex);
      if (!c.error) c.error = std::current_exception();
    }
  }

  // Valid until the next call.
  void* const* addresses(std::span<const DeviceMemory> places) {
    if (addresses_.size() < places.size()) addresses_.resize(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) addresses_[i] = HostMemory::address(places[i]);
    return addresses_.data();
  }

  // At the end of the thread's piece, so that an overrun leaves the piece, and for the last thread
  // also the allocation.
  void* scratch(int thread, std::size_t bytes) const {
    return HostMemory::address(scratch_.at()) +
           scratch_each_ * static_cast<std::size_t>(thread + 1) - aligned(bytes);
  }
  static std::size_t aligned(std::size_t bytes) {
    return (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
  }

  std::shared_ptr<ThreadPool> pool_;  // null: only the caller's thread works
  std::shared_ptr<Allocator> allocator_;
  std::vector<void*> addresses_ = std::vector<void*>(16);
  OwnedMemory scratch_;
  std::size_t scratch_each_ = 0;
};

class CpuDevice final : public Device, public std::enable_shared_from_this<CpuDevice> {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string description() const override {
    return std::string(cpu::isa_name(cpu::allowed_isa()));
  }
  const DeviceLimits& limits() const override {
    // Below both limits, a step takes a few microseconds, about the cost of waking another thread.
    static constexpr DeviceLimits limits{
        .alignment = buffer_alignment, .small_bytes = 32 << 10, .small_flops = 200'000};
    return limits;
  }

  int rank(std::string_view target) const override {
    if (target == "any") return 0;
    const std::optional<cpu::Isa> isa = cpu::isa_from_name(target);
    return isa && *isa <= cpu::allowed_isa() ? 1 + static_cast<int>(*isa) : -1;
  }

  DeviceMemory alloc(std::size_t bytes) override {
    const std::size_t size = (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
    void* data = size >= bytes ? std::aligned_alloc(buffer_alignment, size) : nullptr;
    if (!data)
      throw OutOfMemory("out of memory: cannot allocate ", bytes, " bytes; use smaller sizes");
    prefer_large_pages(static_cast<std::byte*>(data), size);
    return {reinterpret_cast<std::uintptr_t>(data), 0};
  }
  void free(DeviceMemory m, std::size_t) noexcept override { std::free(HostMemory::address(m)); }

  bool shares_host_memory() const override { return true; }
  std::byte* host_address(DeviceMemory m) const override { return HostMemory::address(m); }
  std::optional<DeviceMemory> of_host(const void* data) const override {
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    if (at % buffer_alignment != 0) return std::nullopt;
    return DeviceMemory{at, 0};
  }
  bool shares_memory_with(const Device& other) const override { return other.shares_host_memory(); }
  DeviceMemory comparable(DeviceMemory m) const override {
    return {1, static_cast<std::int64_t>(m.handle) + m.offset};
  }
  std::optional<RawMemory> address_of(DeviceMemory m) const override {
    return RawMemory{HostMemory::address(m), dlpack::dl_cpu, 0};
  }
  std::optional<DeviceMemory> of_address(const RawMemory& m) const override {
    const bool is_of_host = m.device_type == 0 || m.device_type == dlpack::dl_cpu ||
                            m.device_type == dlpack::dl_cuda_host ||
                            m.device_type == dlpack::dl_cuda_managed;
    if (!is_of_host || !m.address) return std::nullopt;
    return DeviceMemory{reinterpret_cast<std::uintptr_t>(m.address), 0};
  }

  std::unique_ptr<LoadedCode> load(std::span<const Binary* const> binaries,
                                   std::string_view where) override {
    return std::make_unique<CpuProgram>(hone::load(binaries, where));
  }

  std::string why_missing(std::string_view library) override {
    for (const LibraryStatus& l : cpu_device_libraries())
      if (l.name == library) return l.failure;
    return cat("cpu: library '", library, "' is not known");
  }

  std::unique_ptr<BoundCall> bind(const CallRequest& r) override {
    if (r.name.starts_with("onednn.")) return onednn::bind(r);
    return Device::bind(r);
  }
  std::optional<Packing> packing(const CallRequest& r) override {
    return r.name.starts_with("onednn.") ? onednn::packing(r) : std::nullopt;
  }
  std::unique_ptr<BoundCall> bind(const StridedCopy& c) override {
    return std::make_unique<CpuCopy>(c);
  }

  std::unique_ptr<Event> make_event(bool) override { return std::make_unique<CpuEvent>(); }
  std::unique_ptr<Stream> open_stream(std::shared_ptr<ThreadPool> pool,
                                      std::shared_ptr<Allocator> allocator) override {
    if (!allocator) allocator = shared_from_this();
    return std::make_unique<CpuStream>(std::move(pool), std::move(allocator));
  }
};

}  // namespace

std::vector<LibraryStatus> cpu_device_libraries() { return {onednn::library_status()}; }

std::shared_ptr<Device> open_cpu_device() { return std::make_shared<CpuDevice>(); }

}  // namespace hone
