#include "backend/cuda/device/memory_split.h"

#include <algorithm>

namespace hone::cuda {

// Pending copies occupy lines of the L1 cache. If blocks get the maximum, Hopper leaves 28 KB for
// L1, and tiles then arrive 20 % later than with 60 KB.
constexpr int most_with_copies = 85;

// Divisions that multiprocessors offer, as KB of shared memory: CUDA Programming Guide, "Compute
// Capabilities". Larger ones leave too little for copies.
constexpr std::int64_t divisions[] = {8, 16, 32, 64, 100, 132, 164, 196};

int shared_percent(const BlockMemory& b, std::int64_t blocks, const Multiprocessors& m) {
  if (b.bytes <= 0 || m.shared_bytes <= 0) return 0;
  const auto percent = [&](std::int64_t bytes) {
    return static_cast<int>(std::min<std::int64_t>((bytes * 100 - 1) / m.shared_bytes + 1, 100));
  };
  const std::int64_t at_once = std::clamp<std::int64_t>((blocks - 1) / m.count + 1, 1, b.most);
  int wanted = percent(at_once * b.bytes);
  if (b.copies == CacheCopies::none) return wanted;
  // What is copied once gains nothing from the cache: the largest division in which no other block
  // fits. Rounded down, because the driver takes the next division that is at least as large.
  for (const std::int64_t d : divisions) {
    const auto share = static_cast<int>((d << 10) * 100 / m.shared_bytes);
    if (b.copies == CacheCopies::once && (d << 10) / b.bytes <= at_once &&
        share <= most_with_copies)
      wanted = std::max(wanted, share);
  }
  return std::min(wanted, std::max(most_with_copies, percent(b.bytes)));
}

}  // namespace hone::cuda
