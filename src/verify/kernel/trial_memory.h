// Device memory that the trials of one compilation reuse, one after the other.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/host_memory.h"

namespace hone {

// Keeps some freed memory for later allocations: new memory is slow, because the system maps it
// page by page and clears it. May be used by several threads.
class TrialMemory final : public Allocator {
 public:
  explicit TrialMemory(std::shared_ptr<Device> device);
  ~TrialMemory() override;
  TrialMemory(const TrialMemory&) = delete;

  const std::shared_ptr<Device>& device() const { return device_; }
  // The same for memory of the host, for a device that does not share it; else null.
  const std::shared_ptr<TrialMemory>& host() const { return host_; }
  DeviceMemory alloc(std::size_t bytes) override;
  void free(DeviceMemory, std::size_t bytes) noexcept override;

  // Host-accessible memory that is followed by an unreadable page. The page stays protected while
  // the memory is kept, because protecting one takes as long as filling many.
  struct BeforePage {
    DeviceMemory at;  // of at least the requested bytes
    std::byte *begin, *page;
  };
  BeforePage alloc_before_page(std::size_t bytes);

 private:
  TrialMemory() : from_(std::make_shared<HostMemory>()) {}

  struct Block {
    DeviceMemory at;
    std::size_t bytes;
    bool is_used;
    std::byte* page = nullptr;  // unreadable
  };
  Block* best_kept(std::size_t bytes, bool has_page);
  void give_back(const Block&) noexcept;
  std::byte* address(DeviceMemory) const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<Allocator> from_;
  std::shared_ptr<TrialMemory> host_;
  std::mutex mutex_;
  std::vector<Block> blocks_;
  std::size_t kept_bytes_ = 0;
};

}  // namespace hone
