// Streams: work is kept as plain data, recorded once, and resubmitted whenever the same work comes
// in the same order.
#pragma once

#include <memory>

#include "backend/vulkan/device/memory.h"
#include "backend/vulkan/device/program.h"
#include "runtime/device.h"

namespace hone::vulkan {

// Threads per group of the kernel that copies vectors.
inline constexpr std::uint32_t plain_copy_threads = 256;

// State shared by the streams of a device, and by all who have opened it.
struct Shared {
  explicit Shared(std::shared_ptr<Machine> m = std::make_shared<Machine>())
      : machine(std::move(m)),
        memory(machine),
        staging(std::make_shared<Staging>(machine)),
        pipelines(machine) {}

  // What others in this process have opened and the driver has not given up, else newly opened.
  static std::shared_ptr<Shared> open();

  // Kernels that copy strided elements, and vectors of 16 bytes.
  const Pipeline& strided_copy();
  const Pipeline& plain_copy();

  std::shared_ptr<Machine> machine;
  Memory memory;
  std::shared_ptr<Staging> staging;
  Pipelines pipelines;

 private:
  std::shared_ptr<const Pipeline> made(const ShaderHeader&, std::span<const std::uint32_t> spirv,
                                       std::string_view what);

  std::once_flag strided_once_, plain_once_;
  std::shared_ptr<const Pipeline> strided_copy_, plain_copy_;
};

// A device timestamp, written by a stream.
class Clock {
 public:
  explicit Clock(std::shared_ptr<Machine>);
  ~Clock();
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  VkQueryPool queries() const { return queries_; }
  // Both must have been written.
  double ms_since(const Clock&) const;

 private:
  std::uint64_t ticks() const;

  std::shared_ptr<Machine> machine_;
  VkQueryPool queries_ = VK_NULL_HANDLE;
};

// Merges dimensions that are contiguous on both sides.
class VulkanCopy final : public BoundCall {
 public:
  // Throws UserError if more than 8 dimensions remain after merging.
  explicit VulkanCopy(StridedCopy);
  const StridedCopy& copy() const { return copy_; }
  std::int64_t count() const { return count_; }

 private:
  StridedCopy copy_;
  std::int64_t count_ = 1;
};

std::unique_ptr<Event> make_event(const Shared&, bool has_time);
std::unique_ptr<Stream> open_stream(std::shared_ptr<Shared>);
std::shared_ptr<Device> device_of(std::shared_ptr<Shared>);

}  // namespace hone::vulkan
