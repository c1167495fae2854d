#include "backend/cpu/device/cpu_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>

#include "backend/cpu/device/copy.h"
#include "backend/cpu/device/onednn.h"
#include "backend/cpu/device/onednn_library.h"
#include "base/cpu.h"
#include "base/error.h"
#include "host/function.h"
#include "runtime/loader.h"

namespace hone {

namespace {

class CpuProgram final : public Program {
 public:
  explicit CpuProgram(LoadedBinary code) : code_(std::move(code)) {}
  ProgramEntry entry(std::string_view name) const override {
    return ProgramEntry{reinterpret_cast<std::uintptr_t>(code_.entry(name))};
  }
  std::size_t bytes() const override { return code_.code_bytes(); }

 private:
  LoadedBinary code_;
};

// Steps run one after another on the caller's thread and the pool's; nothing is ever under way when
// a call returns.
class CpuStream final : public Stream {
 public:
  CpuStream(std::shared_ptr<ThreadPool> pool, std::shared_ptr<Allocator> allocator)
      : pool_(std::move(pool)), allocator_(std::move(allocator)) {}

  int threads() const override { return pool_->threads(); }

  void reserve_scratch(std::size_t bytes) override {
    const std::size_t each = aligned(bytes);
    if (each <= scratch_each_) return;
    scratch_ = {};
    scratch_ = OwnedMemory(allocator_, each * static_cast<std::size_t>(pool_->threads()));
    scratch_each_ = each;
  }

  void launch(const Launch& l) override {
    const auto function = reinterpret_cast<KernelFunction>(static_cast<std::uintptr_t>(l.entry));
    if (l.is_small || l.chunks == 1) {
      function(l.buffers, l.sizes, 0, l.chunks, scratch(0, l.scratch_bytes));
      return;
    }
    struct Job {
      const Launch& launch;
      KernelFunction function;
      const CpuStream& stream;
    } job{l, function, *this};
    pool_->run(
        l.chunks,
        [](void* context, std::int64_t begin, std::int64_t end, int thread) {
          const Job& j = *static_cast<const Job*>(context);
          j.function(j.launch.buffers, j.launch.sizes, begin, end,
                     j.stream.scratch(thread, j.launch.scratch_bytes));
        },
        &job);
  }

  void call(const BoundCall& c, void* const* operands, bool is_small) override {
    const std::int64_t chunks = c.chunks();
    if (is_small || chunks <= 1) {
      if (chunks > 0) c.run(operands, 0, chunks, scratch(0, c.scratch_bytes()));
      return;
    }
    Call job{c, operands, *this, {}, nullptr};
    pool_->run(chunks, &CpuStream::run_call, &job);
    if (job.error) std::rethrow_exception(job.error);
  }

  void wait() override {}

 private:
  struct Call {
    const BoundCall& call;
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

  // The last bytes of a thread's piece, so that what runs past the end leaves the piece, and the
  // last thread's the memory.
  void* scratch(int thread, std::size_t bytes) const {
    return scratch_.data() + scratch_each_ * static_cast<std::size_t>(thread + 1) - aligned(bytes);
  }
  static std::size_t aligned(std::size_t bytes) {
    return (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
  }

  std::shared_ptr<ThreadPool> pool_;
  std::shared_ptr<Allocator> allocator_;
  OwnedMemory scratch_;
  std::size_t scratch_each_ = 0;
};

// A host function with the sizes of its operands; where they lie is told by each run.
class BoundHostCall final : public BoundCall {
 public:
  BoundHostCall(const HostFunction& f, const CallRequest& r) : function_(f) {
    for (const CallOperand& o : r.operands) call_.operands.push_back({o.dtype, o.dims, nullptr});
    call_.settings.assign(r.settings.begin(), r.settings.end());
    check(f, call_);
  }

  void run(void* const* operands, std::int64_t, std::int64_t, void*) const override {
    HostCall call = call_;
    for (std::size_t i = 0; i < call.operands.size(); ++i) call.operands[i].data = operands[i];
    function_.compute(call);
  }

 private:
  const HostFunction& function_;
  HostCall call_;
};

class CpuDevice final : public Device {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string description() const override { return std::string(isa_name(allowed_isa())); }

  int rank(std::string_view target) const override {
    if (target == "any") return 0;
    const std::optional<Isa> isa = isa_from_name(target);
    return isa && *isa <= allowed_isa() ? 1 + static_cast<int>(*isa) : -1;
  }

  std::byte* alloc(std::size_t bytes) override {
    const std::size_t size = (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
    void* data = size >= bytes ? std::aligned_alloc(buffer_alignment, size) : nullptr;
    if (!data) throw UserError("cpu: cannot allocate ", bytes, " bytes; use smaller sizes");
    return static_cast<std::byte*>(data);
  }
  void free(std::byte* data, std::size_t) noexcept override { std::free(data); }
  void upload(std::byte* to, std::span<const std::byte> from) override {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
  }
  void download(std::span<std::byte> to, const std::byte* from) override {
    if (!to.empty()) std::memcpy(to.data(), from, to.size());
  }

  std::unique_ptr<Program> load(std::span<const Binary> binaries, std::string_view where) override {
    return std::make_unique<CpuProgram>(hone::load(binaries, where));
  }

  std::unique_ptr<BoundCall> bind(const CallRequest& r) override {
    if (r.name.starts_with("onednn.")) return onednn::bind(r);
    if (const HostFunction* f = find_host_function(r.name))
      return std::make_unique<BoundHostCall>(*f, r);
    throw UserError("cpu: function '", r.name, "' is not known; compile the plan again");
  }
  std::optional<Packing> packing(const CallRequest& r) override {
    return r.name.starts_with("onednn.") ? onednn::packing(r) : std::nullopt;
  }
  std::unique_ptr<BoundCall> bind(const StridedCopy& c) override {
    return std::make_unique<CpuCopy>(c);
  }

  std::unique_ptr<Stream> open_stream(std::shared_ptr<ThreadPool> pool,
                                      std::shared_ptr<Allocator> allocator) override {
    return std::make_unique<CpuStream>(std::move(pool), std::move(allocator));
  }
};

}  // namespace

std::vector<LibraryStatus> cpu_device_libraries() { return {onednn::library_status()}; }

std::shared_ptr<Device> open_cpu_device() { return std::make_shared<CpuDevice>(); }

}  // namespace hone
