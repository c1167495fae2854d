#include "backend/cuda/device/shared_share.h"

#include <algorithm>

namespace hone::cuda {

// Copies on their way take lines of the first cache. On Hopper the largest share leaves it 28 KB,
// and tiles then arrive 20 % later than with the share below that.
constexpr int most_with_copies = 85;

int shared_percent(const BlockShare& b, std::int64_t blocks, const Multiprocessors& m) {
  if (m.shared_bytes <= 0) return 0;
  const auto percent = [&](std::int64_t bytes) {
    return static_cast<int>(std::min<std::int64_t>((bytes * 100 - 1) / m.shared_bytes + 1, 100));
  };
  if (b.bytes <= 0) return 0;
  const std::int64_t at_once = std::clamp<std::int64_t>((blocks - 1) / m.count + 1, 1, b.most);
  const int wanted = percent(at_once * b.bytes);
  return b.copies_through_cache ? std::min(wanted, std::max(most_with_copies, percent(b.bytes)))
                                : wanted;
}

}  // namespace hone::cuda
