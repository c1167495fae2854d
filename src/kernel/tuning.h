// The decisions of a kernel builder as named integers, which can be printed, stored and compared
// without knowing the builder. Not a schedule.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hone {

// The builder chooses every value that is not named; if empty, all of them.
using Tuning = std::vector<std::pair<std::string, std::int64_t>>;

inline std::int64_t value_or(const Tuning& t, std::string_view name, std::int64_t otherwise) {
  auto it =
      std::find_if(t.begin(), t.end(), [&](const auto& entry) { return entry.first == name; });
  return it == t.end() ? otherwise : it->second;
}

// The tunings of the first `most` tilings.
template <class Tiling>
std::vector<Tuning> named(const std::vector<Tiling>& tilings, std::size_t most = SIZE_MAX) {
  std::vector<Tuning> out;
  for (const Tiling& t : tilings)
    if (out.size() < most) out.push_back(t.named());
  return out;
}

}  // namespace hone
