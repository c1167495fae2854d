// What a builder of kernels decides, as named integers: printed, stored and compared without
// knowing the builder. Not a schedule.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hone {

// An empty one: what the builder chooses by itself. Those not named in it are chosen so, too.
using Tuning = std::vector<std::pair<std::string, std::int64_t>>;

inline std::int64_t value_or(const Tuning& t, std::string_view name, std::int64_t otherwise) {
  auto it =
      std::find_if(t.begin(), t.end(), [&](const auto& entry) { return entry.first == name; });
  return it == t.end() ? otherwise : it->second;
}

// Of the first so many tilings.
template <class Tiling>
std::vector<Tuning> named(const std::vector<Tiling>& tilings, std::size_t most = SIZE_MAX) {
  std::vector<Tuning> out;
  for (const Tiling& t : tilings)
    if (out.size() < most) out.push_back(t.named());
  return out;
}

}  // namespace hone
