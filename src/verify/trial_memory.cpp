#include "verify/trial_memory.h"

#include <algorithm>

namespace hone {

namespace {

constexpr std::size_t most_kept_bytes = 256 << 20;
// Of a block that is longer than what is asked for; the rest is of no use to others.
constexpr std::size_t most_unused_bytes = 256 << 10;

}  // namespace

TrialMemory::TrialMemory(std::shared_ptr<Device> device)
    : device_(std::move(device)), from_(device_) {
  if (device_ && !device_->shares_host_memory()) host_.reset(new TrialMemory);
}

TrialMemory::~TrialMemory() {
  for (const Block& b : blocks_) from_->free(b.at, b.bytes);
}

DeviceMemory TrialMemory::alloc(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  Block* best = nullptr;
  for (Block& b : blocks_)
    if (!b.is_used && b.bytes >= bytes && b.bytes <= 2 * bytes + most_unused_bytes &&
        (!best || b.bytes < best->bytes))
      best = &b;
  if (!best) {
    blocks_.reserve(blocks_.size() + 1);
    return blocks_.emplace_back(from_->alloc(bytes), bytes, true).at;
  }
  best->is_used = true;
  kept_bytes_ -= best->bytes;
  return best->at;
}

void TrialMemory::free(DeviceMemory at, std::size_t) noexcept {
  const std::scoped_lock lock(mutex_);
  const auto block = std::ranges::find(blocks_, at, &Block::at);
  if (kept_bytes_ + block->bytes > most_kept_bytes) {
    from_->free(at, block->bytes);
    blocks_.erase(block);
  } else {
    block->is_used = false;
    kept_bytes_ += block->bytes;
  }
}

}  // namespace hone
