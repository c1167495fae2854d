// Memory of a device that the trials of one compilation take one after the other.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device.h"

namespace hone {

// Keeps some of what is freed for the next who asks: memory that is new to the process is slow, for
// the system hands it out page by page, and clears it. May be used by several threads.
class TrialMemory final : public Allocator {
 public:
  explicit TrialMemory(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~TrialMemory() override;
  TrialMemory(const TrialMemory&) = delete;

  const std::shared_ptr<Device>& device() const { return device_; }
  std::byte* alloc(std::size_t bytes) override;
  void free(std::byte*, std::size_t bytes) noexcept override;

 private:
  struct Block {
    std::byte* data;
    std::size_t bytes;
    bool is_used;
  };
  std::shared_ptr<Device> device_;
  std::mutex mutex_;
  std::vector<Block> blocks_;
  std::size_t kept_bytes_ = 0;
};

}  // namespace hone
