#include "backend/cuda/device/memory_split.h"

#include <algorithm>

namespace hone::cuda {

// Pending copies occupy lines of the L1 cache. If blocks get the maximum, Hopper leaves 28 KB for
// L1, and tiles then arrive 20 % later than with 60 KB.
constexpr int most_with_copies = 85;

int shared_percent(const BlockMemory& b, std::int64_t blocks, const Multiprocessors& m) {
  if (b.bytes <= 0 || m.shared_bytes <= 0) return 0;
  const auto percent = [&](std::int64_t bytes) {
    return static_cast<int>(std::min<std::int64_t>((bytes * 100 - 1) / m.shared_bytes + 1, 100));
  };
  const std::int64_t at_once = std::clamp<std::int64_t>((blocks - 1) / m.count + 1, 1, b.most);
  const int wanted = percent(at_once * b.bytes);
  return b.copies_through_cache ? std::min(wanted, std::max(most_with_copies, percent(b.bytes)))
                                : wanted;
}

}  // namespace hone::cuda
