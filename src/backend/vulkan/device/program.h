// Compiled kernels loaded on a device: one pipeline per kernel, shared between programs.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backend/vulkan/driver/machine.h"
#include "backend/vulkan/shader/shader.h"
#include "base/hash.h"
#include "runtime/cache.h"
#include "runtime/device.h"

namespace hone::vulkan {

// What the driver made of the kernels of one program, kept on disk. A file for each program, so
// that a start reads only what it needs, however many programs this device has run.
class PipelineCache {
 public:
  PipelineCache(std::shared_ptr<Machine>, const Hash128& program);
  ~PipelineCache();  // writes the file if it has more than that
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  Machine& machine() const { return *machine_; }
  VkPipelineCache handle() const { return handle_; }
  void grow() { has_more_ = true; }

 private:
  void keep();

  std::shared_ptr<Machine> machine_;
  VkPipelineCache handle_ = VK_NULL_HANDLE;
  std::atomic<bool> has_more_ = false;  // than the file
  CompileCache files_;
  Hash128 key_;
};

// A kernel that can be dispatched.
struct Pipeline {
  explicit Pipeline(std::shared_ptr<PipelineCache> c) : cache(std::move(c)) {}
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  std::shared_ptr<PipelineCache> cache;
  VkPipeline handle = VK_NULL_HANDLE;
  ShaderHeader header;
  // If header.alignment > 1: the SPIR-V of the kernel for unaligned operands.
  std::vector<std::uint32_t> words;
  mutable std::shared_ptr<const Pipeline> unaligned;  // made at first use
};

// All kernels use the same push constant range. Thread-safe.
class Pipelines {
 public:
  explicit Pipelines(std::shared_ptr<Machine>);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  // Throws UserError naming `where` when the code is invalid or needs features that the device
  // lacks.
  std::shared_ptr<const Pipeline> get(std::span<const std::byte> code,
                                      const std::shared_ptr<PipelineCache>&,
                                      std::string_view where);
  std::shared_ptr<const Pipeline> make(const ShaderHeader&, std::span<const std::uint32_t> spirv,
                                       const std::shared_ptr<PipelineCache>&,
                                       std::string_view where);
  // For operands of any alignment.
  const Pipeline& unaligned(const Pipeline&);
  VkPipelineLayout layout() const { return layout_; }
  const std::shared_ptr<Machine>& machine() const { return machine_; }

 private:
  std::shared_ptr<Pipeline> compiled(const ShaderHeader&, std::span<const std::uint32_t> words,
                                     bool is_aligned, const std::shared_ptr<PipelineCache>&);

  std::shared_ptr<Machine> machine_;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  std::mutex mutex_;
  std::map<Hash128, std::weak_ptr<const Pipeline>> known_;
};

// Device::rank.
int rank_of(const Adapter&, std::string_view target);

class VulkanProgram final : public LoadedCode {
 public:
  VulkanProgram(Pipelines&, std::span<const Binary* const>, std::string_view where);
  KernelHandle entry(std::string_view name) const override;
  std::size_t bytes() const override { return bytes_; }
  static const Pipeline& pipeline(KernelHandle e) {
    return **reinterpret_cast<const std::shared_ptr<const Pipeline>*>(
        static_cast<std::uintptr_t>(e));
  }

 private:
  std::map<std::string, std::shared_ptr<const Pipeline>, std::less<>> entries_;
  std::size_t bytes_ = 0;
};

}  // namespace hone::vulkan
