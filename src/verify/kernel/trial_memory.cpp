#include "verify/kernel/trial_memory.h"

#include <algorithm>
#include <cstdint>

#include "base/fault.h"

namespace hone {

namespace {

constexpr std::size_t most_kept_bytes = 256 << 20;
// Limit for the unused rest of a larger block, which no other allocation can use.
constexpr std::size_t most_unused_bytes = 256 << 10;

}  // namespace

TrialMemory::TrialMemory(std::shared_ptr<Device> device)
    : device_(std::move(device)), from_(device_) {
  if (device_ && !device_->shares_host_memory()) host_.reset(new TrialMemory);
}

TrialMemory::~TrialMemory() {
  for (const Block& b : blocks_) give_back(b);
}

void TrialMemory::give_back(const Block& b) noexcept {
  if (b.page) open_pages(b.page);
  from_->free(b.at, b.bytes);
}

std::byte* TrialMemory::address(DeviceMemory m) const {
  return device_ ? device_->host_address(m) : HostMemory::address(m);
}

// Returns the smallest suitable block and marks it as used.
TrialMemory::Block* TrialMemory::best_kept(std::size_t bytes, bool has_page) {
  Block* best = nullptr;
  for (Block& b : blocks_)
    if (!b.is_used && (b.page != nullptr) == has_page && b.bytes >= bytes &&
        b.bytes <= 2 * bytes + most_unused_bytes && (!best || b.bytes < best->bytes))
      best = &b;
  if (best) {
    best->is_used = true;
    kept_bytes_ -= best->bytes;
  }
  return best;
}

DeviceMemory TrialMemory::alloc(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (const Block* kept = best_kept(bytes, false)) return kept->at;
  blocks_.reserve(blocks_.size() + 1);
  return blocks_.emplace_back(from_->alloc(bytes), bytes, true).at;
}

TrialMemory::BeforePage TrialMemory::alloc_before_page(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  // With this size, the last whole page begins after the requested bytes.
  bytes += 2 * fence_page_bytes;
  if (const Block* kept = best_kept(bytes, true)) return {kept->at, address(kept->at), kept->page};
  blocks_.reserve(blocks_.size() + 1);
  Block& made = blocks_.emplace_back(from_->alloc(bytes), bytes, true);
  std::byte* begin = address(made.at);
  const std::size_t beyond = (reinterpret_cast<std::uintptr_t>(begin) + bytes) % fence_page_bytes;
  std::byte* page = begin + bytes - beyond - fence_page_bytes;
  close_pages(page);
  made.page = page;
  return {made.at, begin, page};
}

void TrialMemory::free(DeviceMemory at, std::size_t) noexcept {
  const std::scoped_lock lock(mutex_);
  const auto block = std::ranges::find(blocks_, at, &Block::at);
  if (kept_bytes_ + block->bytes > most_kept_bytes) {
    give_back(*block);
    blocks_.erase(block);
  } else {
    block->is_used = false;
    kept_bytes_ += block->bytes;
  }
}

}  // namespace hone
