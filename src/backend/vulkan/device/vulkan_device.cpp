#include "backend/vulkan/device/vulkan_device.h"

#include <plain_copy.h>  // generated from plain_copy.comp
#include <strided_copy.h>
#include <unistd.h>

#include <map>

#include "backend/vulkan/device/stream.h"
#include "base/error.h"

namespace hone::vulkan {

// Drivers take long to open a device, and memory and pipelines belong to one opening. It stays open
// until the process ends, like the instance: a model is often run right after it was compiled.
std::shared_ptr<Shared> Shared::open() {
  static std::mutex mutex;
  static auto& known = *new std::map<std::string, std::shared_ptr<Shared>>;
  static const ::pid_t process = ::getpid();
  if (process != ::getpid())
    throw UserError(
        "vulkan: this process was forked from one that had opened a device, which drivers do not "
        "allow; open devices after the fork only");
  const std::shared_ptr<Instance> instance = open_instance();
  Adapter adapter = choose_adapter(*instance);
  const std::scoped_lock lock(mutex);
  // The summary has the UUID; HONE_VULKAN_SUBGROUPS and HONE_VULKAN_MATRICES may have changed.
  std::shared_ptr<Shared>& shared = known[cat(adapter.summary(), form_of(adapter).name)];
  if (!shared || shared->machine->is_lost())
    shared = std::make_shared<Shared>(std::make_shared<Machine>(instance, std::move(adapter)));
  return shared;
}

const Pipeline& Shared::strided_copy() {
  std::call_once(strided_once_, [&] {
    ShaderHeader header;
    header.operands = 29;
    header.threads = 64;
    strided_copy_ = made(header, strided_copy_spirv, "the copy between strides");
  });
  return *strided_copy_;
}

const Pipeline& Shared::plain_copy() {
  std::call_once(plain_once_, [&] {
    ShaderHeader header;
    header.operands = 2;
    header.sizes = 1;
    header.threads = plain_copy_threads;
    plain_copy_ = made(header, plain_copy_spirv, "the copy of vectors");
  });
  return *plain_copy_;
}

std::shared_ptr<const Pipeline> Shared::made(const ShaderHeader& header,
                                             std::span<const std::uint32_t> spirv,
                                             std::string_view what) {
  const auto cache = std::make_shared<PipelineCache>(machine, hash128(std::as_bytes(spirv)));
  return pipelines.make(header, spirv, cache, what);
}

namespace {

class VulkanDevice final : public Device {
 public:
  explicit VulkanDevice(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {
    // A software driver computes like the CPU, whatever it reports, so it is checked against that.
    const Adapter& a = shared_->machine->adapter;
    limits_.keeps_denormals = a.keeps_denormals || a.is_software;
  }

  // The device stays open, but other programs may need the memory.
  ~VulkanDevice() override { shared_->memory.give_back_unused(); }

  std::string_view name() const override { return "vulkan"; }
  std::string description() const override {
    return std::string(form_of(shared_->machine->adapter).name);
  }
  const DeviceLimits& limits() const override { return limits_; }
  int rank(std::string_view target) const override {
    return rank_of(shared_->machine->adapter, target);
  }
  std::optional<DeviceMemory> of_host(const void* data) const override {
    const DeviceMemory m{reinterpret_cast<std::uintptr_t>(data), 0};
    if (m.handle % limits().alignment != 0 || !shared_->memory.holds(m)) return std::nullopt;
    return m;
  }
  bool shares_memory_with(const Device& other) const override {
    const auto* o = dynamic_cast<const VulkanDevice*>(&other);
    return o && o->shared_ == shared_;
  }
  DeviceMemory comparable(DeviceMemory m) const override {
    return {1, static_cast<std::int64_t>(Memory::address(m))};
  }
  DeviceMemory alloc(std::size_t bytes) override { return shared_->memory.alloc(bytes); }
  void free(DeviceMemory m, std::size_t) noexcept override { shared_->memory.free(m); }
  std::unique_ptr<LoadedCode> load(std::span<const Binary* const> binaries,
                                   std::string_view where) override {
    return std::make_unique<VulkanProgram>(shared_->pipelines, binaries, where);
  }
  std::string why_missing(std::string_view library) override {
    return cat("Vulkan devices call no library '", library, "'");
  }
  using Device::bind;
  std::unique_ptr<BoundCall> bind(const StridedCopy& c) override {
    return std::make_unique<VulkanCopy>(c);
  }
  std::unique_ptr<Event> make_event(bool has_time) override {
    return vulkan::make_event(*shared_, has_time);
  }
  std::unique_ptr<Stream> open_stream(std::shared_ptr<ThreadPool>,
                                      std::shared_ptr<Allocator>) override {
    return vulkan::open_stream(shared_);
  }

 private:
  std::shared_ptr<Shared> shared_;
  DeviceLimits limits_;
};

}  // namespace

std::shared_ptr<Device> device_of(std::shared_ptr<Shared> shared) {
  return std::make_shared<VulkanDevice>(std::move(shared));
}

std::shared_ptr<Device> open_device() { return device_of(Shared::open()); }

std::vector<LibraryStatus> device_libraries() {
  std::vector<LibraryStatus> out;
  try {
    for (const Adapter& a : adapters(*open_instance())) {
      LibraryStatus& l = out.emplace_back();
      l.name = cat("vulkan:", out.size() - 1);
      l.version = a.api_text();
      l.file = a.summary();
    }
  } catch (const UserError&) {
    return {};  // no loader or driver: open_device() reports which
  }
  return out;
}

std::size_t device_count() {
  static const std::size_t count = [] {
    try {
      choose_adapter(*open_instance());
      return 1;
    } catch (const UserError&) {
      return 0;
    }
  }();
  return count;
}

}  // namespace hone::vulkan
