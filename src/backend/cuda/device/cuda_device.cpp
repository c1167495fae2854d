#include "backend/cuda/device/cuda_device.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>

#include "backend/cuda/device/context.h"
#include "backend/cuda/device/copy.h"
#include "backend/cuda/device/cublaslt.h"
#include "backend/cuda/device/cudnn.h"
#include "backend/cuda/device/cudnn_handles.h"
#include "backend/cuda/device/program.h"
#include "base/error.h"
#include "runtime/dlpack.h"

namespace hone {

namespace cuda {

namespace {

class CudaEvent final : public Event {
 public:
  CudaEvent(std::shared_ptr<Context> context, bool has_time)
      : context_(std::move(context)), has_time_(has_time) {
    context_->refuse_if_lost();
    const Scope scope(*context_);
    context_->check(
        driver().cuEventCreate(&handle_, has_time ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING),
        "cuEventCreate");
  }
  // The caller's event.
  CudaEvent(std::shared_ptr<Context> context, CUevent handle)
      : context_(std::move(context)), has_time_(false), is_owned_(false), handle_(handle) {}
  ~CudaEvent() override {
    if (is_owned_ && !context_->is_lost()) driver().cuEventDestroy(handle_);
  }
  void synchronize() override {
    context_->refuse_if_lost();
    context_->check(driver().cuEventSynchronize(handle_), "cuEventSynchronize");
  }
  std::optional<double> ms_since(const Event& other) const override {
    const auto* from = dynamic_cast<const CudaEvent*>(&other);
    if (!from || !has_time_ || !from->has_time_) return std::nullopt;
    context_->refuse_if_lost();
    const Scope scope(*context_);
    float ms = 0;
    context_->check(driver().cuEventElapsedTime(&ms, from->handle_, handle_), "cuEventElapsedTime");
    return ms;
  }
  CUevent handle() const { return handle_; }

 private:
  std::shared_ptr<Context> context_;
  bool has_time_, is_owned_ = true;
  CUevent handle_ = nullptr;
};

// The kernels launched since the stream was last idle, for messages.
class Recent {
 public:
  void add(const LoadedKernel& k) { names_[count_++ % names_.size()] = &k.name; }
  void clear() { count_ = 0; }
  std::string text() const {
    if (count_ == 0) return "";
    std::string out = count_ == 1 ? "it ran" : cat("it ran ", count_, " kernels, the last ones");
    const std::size_t shown = std::min(count_, names_.size());
    for (std::size_t i = count_ - shown; i < count_; ++i)
      out += cat(i == count_ - shown ? " " : ", ", *names_[i % names_.size()]);
    return out;
  }

 private:
  std::array<const std::string*, 4> names_{};
  std::size_t count_ = 0;
};

class CudaRecording final : public Recording {
 public:
  CudaRecording(std::shared_ptr<Context> context, CUgraphExec graph,
                std::shared_ptr<OwnedMemory> scratch)
      : context_(std::move(context)), graph_(graph), scratch_(std::move(scratch)) {}
  ~CudaRecording() override {
    if (!context_->is_lost()) driver().cuGraphExecDestroy(graph_);
  }
  CUgraphExec graph() const { return graph_; }

 private:
  std::shared_ptr<Context> context_;
  CUgraphExec graph_;
  std::shared_ptr<OwnedMemory> scratch_;  // that its kernels use
};

class CudaStream final : public Stream {
 public:
  CudaStream(std::shared_ptr<Context> context, std::shared_ptr<Allocator> allocator)
      : context_(std::move(context)), allocator_(std::move(allocator)) {
    context_->refuse_if_lost();
    const Scope scope(*context_);
    check(driver().cuStreamCreate(&handle_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    recorder_ = handle_;
  }
  // The caller's stream, of this context.
  CudaStream(std::shared_ptr<Context> context, std::shared_ptr<Allocator> allocator,
             CUstream adopted)
      : context_(std::move(context)),
        allocator_(std::move(allocator)),
        is_owned_(false),
        handle_(adopted) {
    context_->refuse_if_lost();
    const Scope scope(*context_);
    CUcontext of = nullptr;
    check(driver().cuStreamGetCtx(handle_, &of), "cuStreamGetCtx");
    if (of != context_->handle())
      throw UserError("cuda: the stream is of another context than the primary one of GPU ",
                      context_->ordinal(), ", on which the plan runs; give a stream of that GPU");
  }
  ~CudaStream() override {
    if (context_->is_lost()) return;
    CUcontext old = nullptr;
    if (driver().cuCtxPushCurrent(context_->handle()) != CUDA_SUCCESS) return;
    if (is_owned_) driver().cuStreamSynchronize(handle_);
    cudnn::release(*context_, handle_);
    if (recorder_) {
      cudnn::release(*context_, recorder_);
      driver().cuStreamDestroy(recorder_);
    }
    driver().cuCtxPopCurrent(&old);
  }

  // Threads that have scratch memory at once; kernels with scratch run in this many threads.
  int threads() const override { return scratch_threads; }
  // The first launch that needs scratch memory allocates it for its number of threads.
  void reserve_scratch(std::size_t) override {}

  void upload(DeviceMemory to, std::span<const std::byte> from) override {
    if (from.empty()) return;
    const Scope scope(usable());
    check(driver().cuMemcpyHtoDAsync(address(to), from.data(), from.size(), handle_),
          "cuMemcpyHtoDAsync");
  }
  void download(std::span<std::byte> to, DeviceMemory from) override {
    if (to.empty()) return;
    const Scope scope(usable());
    check(driver().cuMemcpyDtoHAsync(to.data(), address(from), to.size(), handle_),
          "cuMemcpyDtoHAsync");
  }
  void copy(DeviceMemory to, DeviceMemory from, std::size_t bytes) override {
    if (bytes == 0) return;
    const Scope scope(usable());
    check(driver().cuMemcpyDtoDAsync(address(to), address(from), bytes, handle_),
          "cuMemcpyDtoDAsync");
  }
  void fill(DeviceMemory to, std::byte value, std::size_t bytes) override {
    if (bytes == 0) return;
    const Scope scope(usable());
    check(driver().cuMemsetD8Async(address(to), std::to_integer<unsigned char>(value), bytes,
                                   handle_),
          "cuMemsetD8Async");
  }

  void launch(const Launch& l) override {
    auto& kernel = *reinterpret_cast<LoadedKernel*>(static_cast<std::uintptr_t>(l.entry));
    if (l.chunks <= 0) return;
    const CodeHeader& h = kernel.header;
    HONE_ASSERT(l.operands.size() == h.params, kernel.name, ": ", l.operands.size(),
                " operands for ", h.params, " parameters");
    const std::int64_t groups = (l.chunks - 1) / h.groups + 1;
    std::int64_t blocks =
        std::min<std::int64_t>(groups, most_blocks / h.groups / h.blocks) * h.blocks;
    values_.clear();
    std::uint64_t addresses = 0;
    for (const DeviceMemory& m : l.operands) {
      values_.push_back(address(m));
      addresses |= values_.back();
    }
    const bool is_aligned = addresses % h.alignment == 0;
    LoadedFunction& function = is_aligned ? kernel.aligned : kernel.unaligned;
    if (!function.handle)
      throw UserError(kernel.name, ": an operand does not begin at a multiple of ", h.alignment,
                      " bytes, as the plan promised; compile the plan again");
    const Scope scope(usable());
    if (h.has_scratch) {
      const auto threads = static_cast<std::int64_t>(h.threads);
      blocks = std::clamp<std::int64_t>(scratch_threads / threads, 1, blocks);
      const std::size_t each = (l.scratch_bytes + 63) / 64 * 64;
      take_scratch(each * static_cast<std::size_t>(blocks * threads));
      values_.push_back(address(scratch_->at()));
      values_.push_back(each);
    }
    for (std::uint32_t i = 0; i < h.sizes; ++i)
      values_.push_back(static_cast<std::uint64_t>(l.sizes[i]));
    arguments_.clear();
    for (CUdeviceptr& v : values_) arguments_.push_back(&v);
    recent_.add(kernel);
    divide_memory(function, blocks);
    // It may start while the previous launch ends, because it waits for those results itself.
    CUlaunchAttribute early{};
    early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    early.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{};
    config.gridDimX = static_cast<unsigned>(blocks);
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = h.threads;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = h.shared_bytes;
    config.hStream = handle_;
    config.attrs = &early;
    config.numAttrs = h.waits ? 1 : 0;
    check(driver().cuLaunchKernelEx(&config, function.handle, arguments_.data(), nullptr),
          "cuLaunchKernelEx");
  }

  void call(const BoundCall& c, std::span<const DeviceMemory> operands, bool) override {
    const Scope scope(usable());
    values_.clear();
    for (const DeviceMemory& m : operands) values_.push_back(address(m));
    static_cast<const CudaCall&>(c).run(values_, handle_);
  }

  // The default stream cannot be captured, and a caller may capture his own: its work is recorded
  // on another.
  bool start_recording() override {
    const Scope scope(usable());
    if (!recorder_)
      check(driver().cuStreamCreate(&recorder_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check(driver().cuStreamBeginCapture(recorder_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
          "cuStreamBeginCapture");
    std::swap(handle_, recorder_);
    return true;
  }
  // Work that cannot be captured fails the capture; the stream stays usable.
  std::unique_ptr<Recording> finish_recording() override {
    std::swap(handle_, recorder_);
    const Scope scope(usable());
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    if (driver().cuStreamEndCapture(recorder_, &graph) != CUDA_SUCCESS) return nullptr;
    const CUresult r = driver().cuGraphInstantiate(&executable, graph, 0);
    driver().cuGraphDestroy(graph);
    if (r != CUDA_SUCCESS) return nullptr;
    return std::make_unique<CudaRecording>(context_, executable, scratch_);
  }
  void replay(const Recording& r) override {
    const Scope scope(usable());
    check(driver().cuGraphLaunch(static_cast<const CudaRecording&>(r).graph(), handle_),
          "cuGraphLaunch");
  }

  void record(Event& e) override {
    const Scope scope(usable());
    check(driver().cuEventRecord(static_cast<CudaEvent&>(e).handle(), handle_), "cuEventRecord");
  }
  void wait(Event& e) override {
    auto* event = dynamic_cast<CudaEvent*>(&e);
    if (!event) return e.synchronize();
    const Scope scope(usable());
    check(driver().cuStreamWaitEvent(handle_, event->handle(), 0), "cuStreamWaitEvent");
  }
  void synchronize() override {
    const Scope scope(usable());
    check(driver().cuStreamSynchronize(handle_), "cuStreamSynchronize");
    recent_.clear();
  }

 private:
  static constexpr int scratch_threads = 1024;
  static constexpr std::int64_t most_blocks = 0x7fffffff;

  // A launch uses the last setting of its kernel.
  void divide_memory(LoadedFunction& f, std::int64_t blocks) {
    const int percent = shared_percent(f.memory, blocks, context_->multiprocessors());
    if (f.percent.exchange(percent, std::memory_order_relaxed) == percent) return;
    check(driver().cuFuncSetAttribute(f.handle, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                      percent),
          "cuFuncSetAttribute");
  }

  const Context& usable() const {
    context_->refuse_if_lost();
    return *context_;
  }
  void check(CUresult r, const char* call) {
    if (r != CUDA_SUCCESS) context_->check(r, call, recent_.text());
  }

  void take_scratch(std::size_t bytes) {
    if (scratch_ && bytes <= scratch_->size()) return;
    check(driver().cuStreamSynchronize(handle_), "cuStreamSynchronize");
    scratch_ = nullptr;
    scratch_ = std::make_shared<OwnedMemory>(allocator_, bytes);
  }

  std::shared_ptr<Context> context_;
  std::shared_ptr<Allocator> allocator_;
  bool is_owned_ = true;
  CUstream handle_ = nullptr;    // swapped with the next while work is recorded
  CUstream recorder_ = nullptr;  // the same, unless the stream is the caller's
  std::shared_ptr<OwnedMemory> scratch_;
  std::vector<CUdeviceptr> values_;
  std::vector<void*> arguments_;
  Recent recent_;
};

class CudaDevice final : public Device, public std::enable_shared_from_this<CudaDevice> {
 public:
  explicit CudaDevice(int ordinal)
      : context_(Context::open(ordinal)), description_(cat("sm_", context_->capability())) {}

  std::string_view name() const override { return "cuda"; }
  std::string description() const override { return description_; }
  const DeviceLimits& limits() const override {
    static constexpr DeviceLimits limits;  // as plans align buffers
    return limits;
  }
  int rank(std::string_view target) const override {
    return rank_of(target, context_->capability());
  }

  // A caller's tensors may be on this GPU; device addresses are valid in this process.
  std::optional<DeviceMemory> of_host(const void* data) const override {
    const auto at = reinterpret_cast<CUdeviceptr>(data);
    unsigned type = 0;
    int ordinal = -1;
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void* answers[] = {&type, &ordinal};
    if (at % limits().alignment != 0 ||
        driver().cuPointerGetAttributes(2, asked, answers, at) != CUDA_SUCCESS ||
        type != CU_MEMORYTYPE_DEVICE || ordinal != context_->ordinal())
      return std::nullopt;
    return DeviceMemory{at, 0};
  }

  bool shares_memory_with(const Device& other) const override {
    const auto* o = dynamic_cast<const CudaDevice*>(&other);
    return o && o->context_ == context_;
  }
  DeviceMemory comparable(DeviceMemory m) const override {
    return {1, static_cast<std::int64_t>(address(m))};
  }
  std::optional<RawMemory> address_of(DeviceMemory m) const override {
    return RawMemory{reinterpret_cast<void*>(address(m)), dlpack::dl_cuda, context_->ordinal()};
  }
  std::optional<DeviceMemory> of_address(const RawMemory& m) const override {
    const auto at = reinterpret_cast<CUdeviceptr>(m.address);
    unsigned type = 0;
    int ordinal = -1, is_managed = 0;
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void* answers[] = {&type, &ordinal, &is_managed};
    const bool may_be = m.device_type == 0 || m.device_type == dlpack::dl_cuda_managed ||
                        (m.device_type == dlpack::dl_cuda && m.ordinal == context_->ordinal());
    if (!may_be || !at || driver().cuPointerGetAttributes(3, asked, answers, at) != CUDA_SUCCESS)
      return std::nullopt;
    const bool is_here = type == CU_MEMORYTYPE_DEVICE && ordinal == context_->ordinal();
    if (!is_here && !is_managed) return std::nullopt;
    return DeviceMemory{at, 0};
  }

  DeviceMemory alloc(std::size_t bytes) override { return {context_->alloc(bytes), 0}; }
  void free(DeviceMemory m, std::size_t) noexcept override { context_->free(address(m)); }

  std::unique_ptr<LoadedCode> load(std::span<const Binary* const> binaries,
                                   std::string_view where) override {
    return std::make_unique<CudaProgram>(context_, binaries, where);
  }
  std::string why_missing(std::string_view library) override {
    for (const LibraryStatus& l : cuda_device_libraries())
      if (l.name == library) return l.failure;
    return cat("cuda: library '", library, "' is not known");
  }
  std::unique_ptr<BoundCall> bind(const CallRequest& r) override {
    if (r.name.starts_with("cublaslt.")) return cublaslt::bind(context_, r);
    if (r.name.starts_with("cudnn.")) return cudnn::bind(context_, r);
    return Device::bind(r);
  }
  std::optional<Packing> packing(const CallRequest& r) override { return cudnn::packing(r); }
  std::unique_ptr<BoundCall> bind(const StridedCopy& c) override {
    return std::make_unique<CudaCopy>(context_, c);
  }
  std::unique_ptr<Event> make_event(bool has_time) override {
    return std::make_unique<CudaEvent>(context_, has_time);
  }
  std::unique_ptr<Stream> open_stream(std::shared_ptr<ThreadPool>,
                                      std::shared_ptr<Allocator> allocator) override {
    if (!allocator) allocator = shared_from_this();
    return std::make_unique<CudaStream>(context_, std::move(allocator));
  }
  std::shared_ptr<Stream> adopt_stream(void* native) override {
    return std::make_shared<CudaStream>(context_, shared_from_this(),
                                        static_cast<CUstream>(native));
  }
  std::unique_ptr<Event> adopt_event(void* native) override {
    if (!native) throw UserError("cuda: the event is null, expected a CUevent");
    return std::make_unique<CudaEvent>(context_, static_cast<CUevent>(native));
  }

 private:
  std::shared_ptr<Context> context_;
  std::string description_;
};

}  // namespace

}  // namespace cuda

std::shared_ptr<Device> open_cuda_device() {
  static std::atomic<unsigned> next = 0;
  const int count = cuda::working_driver().devices;
  return std::make_shared<cuda::CudaDevice>(
      static_cast<int>(next++ % static_cast<unsigned>(count)));
}

std::size_t cuda_device_count() { return static_cast<std::size_t>(cuda::driver().devices); }

static constexpr const char* driver_hint =
    "install NVIDIA's driver; without it plans run on the other devices";

std::vector<LibraryStatus> cuda_device_libraries() {
  const cuda::Driver& d = cuda::driver();
  // A machine without an NVIDIA GPU reports no missing library.
  if (d.version == 0 && !std::filesystem::exists("/dev/nvidiactl")) return {};
  if (!d.failure.empty()) return {{.name = "cuda", .failure = d.failure, .hint = driver_hint}};
  LibraryStatus out{.name = "cuda"};
  if (d.version > 0)
    out.version = cat("driver for CUDA ", d.version / 1000, ".", d.version % 1000 / 10);
  for (int i = 0; i < d.devices; ++i) {
    CUdevice device = 0;
    char name[256] = {};
    if (d.cuDeviceGet(&device, i) == CUDA_SUCCESS &&
        d.cuDeviceGetName(name, sizeof name - 1, device) == CUDA_SUCCESS)
      out.version += cat(", ", name);
  }
  out.file = "libcuda.so.1";
  out.hint = driver_hint;
  return {out, cublaslt::library_status(), cudnn::library_status()};
}

}  // namespace hone
