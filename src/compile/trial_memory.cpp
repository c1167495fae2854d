#include "compile/trial_memory.h"

#include <algorithm>

namespace hone {

namespace {

constexpr std::size_t most_kept_bytes = 32 << 20;
// Of a block that is longer than what is asked for; the rest is of no use to others.
constexpr std::size_t most_unused_bytes = 256 << 10;

}  // namespace

TrialMemory::~TrialMemory() {
  for (const Block& b : blocks_) device_->free(b.data, b.bytes);
}

std::byte* TrialMemory::alloc(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  Block* best = nullptr;
  for (Block& b : blocks_)
    if (!b.is_used && b.bytes >= bytes && b.bytes <= 2 * bytes + most_unused_bytes &&
        (!best || b.bytes < best->bytes))
      best = &b;
  if (!best) {
    blocks_.reserve(blocks_.size() + 1);
    return blocks_.emplace_back(device_->alloc(bytes), bytes, true).data;
  }
  best->is_used = true;
  kept_bytes_ -= best->bytes;
  return best->data;
}

void TrialMemory::free(std::byte* data, std::size_t) noexcept {
  const std::scoped_lock lock(mutex_);
  const auto block = std::ranges::find(blocks_, data, &Block::data);
  if (kept_bytes_ + block->bytes > most_kept_bytes) {
    device_->free(data, block->bytes);
    blocks_.erase(block);
  } else {
    block->is_used = false;
    kept_bytes_ += block->bytes;
  }
}

}  // namespace hone
