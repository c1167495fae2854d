#include "schedule/place.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "schedule/place_numbers.h"
#include "schedule/size_order.h"

namespace hone {

namespace {

// Values for all symbols: a point at which placements are tried and compared.
using Point = std::map<std::string, std::int64_t, std::less<>>;

std::int64_t at(const Dim& d, const Point& p) {
  if (auto n = d.as_number()) return *n;
  return d.eval([&](std::string_view name) { return p.find(name)->second; });
}

std::vector<Extent> extents_at(std::span<const Lifetime> all, const Dims& sizes, const Point& p) {
  std::vector<Extent> out;
  out.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    out.push_back({at(sizes[i], p), all[i].first, all[i].last});
  return out;
}

// Smallest, usual and large size of a symbol.
std::vector<std::int64_t> tried_values(const Dim& symbol) {
  constexpr std::int64_t usual = 16, large = 1024;
  std::int64_t low = std::max<std::int64_t>(symbol.low(), 1), high = symbol.high();
  if (high <= 64 * low) return {symbol.low(), low + (high - low) / 2, high};
  return {symbol.low(), std::clamp(usual, low, high), std::clamp(large, low, high)};
}

// All combinations for a few symbols of a small problem, otherwise all symbols varied together.
std::vector<Point> points_of(const Dims& sizes) {
  constexpr std::size_t most_symbols = 3, most_sizes = 500;
  std::map<std::string, std::vector<std::int64_t>> values;
  for (const Dim& d : sizes)
    for (const Dim& s : d.is_number() ? Dims() : d.symbols())
      values.try_emplace(s.name(), tried_values(s));
  std::vector<Point> out(1);
  if (values.size() > most_symbols || sizes.size() > most_sizes) {
    out.resize(3);
    for (auto& [name, v] : values)
      for (std::size_t i = 0; i < 3; ++i) out[i][name] = v[i];
    return out;
  }
  for (auto& [name, v] : values) {
    std::vector<Point> more;
    for (const Point& p : out)
      for (std::int64_t n : v) {
        more.push_back(p);
        more.back()[name] = n;
      }
    out = std::move(more);
  }
  return out;
}

// For every time, the top block of those placed so far.
class Skyline {
 public:
  // Calls `below` for each piece that lies within [first, last].
  void visit(std::int64_t first, std::int64_t last,
             const std::function<void(std::uint32_t)>& below) const {
    auto it = tops_.upper_bound(first);
    if (it != tops_.begin()) --it;
    for (; it != tops_.end() && it->first <= last; ++it)
      if (it->second.until >= first) below(it->second.block);
  }

  void cover(std::int64_t first, std::int64_t last, std::uint32_t block) {
    split(first);
    split(last + 1);
    tops_.erase(tops_.lower_bound(first), tops_.lower_bound(last + 1));
    tops_[first] = {last, block};
  }

 private:
  struct Top {
    std::int64_t until;
    std::uint32_t block;
  };
  void split(std::int64_t at) {
    auto it = tops_.lower_bound(at);
    if (it == tops_.begin()) return;
    --it;
    if (it->second.until < at) return;
    Top rest = it->second;
    it->second.until = at - 1;
    tops_[at] = rest;
  }
  std::map<std::int64_t, Top> tops_;
};

// Stacks blocks from the bottom up: each begins where all blocks below it have ended. Calls
// place(block, blocks below).
template <class Place>
void stack(std::span<const Lifetime> all, const Sequence& order, Place place) {
  Skyline skyline;
  for (std::uint32_t i : order) {
    std::set<std::uint32_t> below;
    skyline.visit(all[i].first, all[i].last, [&](std::uint32_t b) { below.insert(b); });
    place(i, below);
    skyline.cover(all[i].first, all[i].last, i);
  }
}

// The order of the blocks of a numeric placement, from the bottom up.
Sequence order_of(const std::vector<Extent>& extents, const Offsets& at) {
  return sorted(extents.size(), [&](auto a, auto b) {
    return at[a] != at[b] ? at[a] < at[b] : extents[a].bytes < extents[b].bytes;
  });
}

double height(std::span<const Lifetime> all, const std::vector<Extent>& extents,
              const Sequence& order) {
  Offsets at(all.size(), 0);
  stack(all, order, [&](std::uint32_t i, const std::set<std::uint32_t>& below) {
    for (std::uint32_t b : below) at[i] = std::max(at[i], at[b] + extents[b].bytes);
  });
  return static_cast<double>(end_of(extents, at));
}

// The result for one point.
struct Trial {
  std::vector<Extent> extents;
  std::int64_t fullest = 0, bound = 0;  // the step at which the most bytes are live, and how many
  Sequence order;
};

std::vector<Trial> trials_of(std::span<const Lifetime> all, const Dims& sizes) {
  std::vector<Trial> out;
  for (const Point& p : points_of(sizes)) {
    Trial t{extents_at(all, sizes, p), 0, 0, {}};
    std::tie(t.fullest, t.bound) = fullest_step(t.extents);
    t.order = order_of(t.extents, place_numbers(t.extents, t.bound));
    out.push_back(std::move(t));
  }
  return out;
}

// The order whose worst ratio of height to bound is smallest.
const Sequence& best_order(std::span<const Lifetime> all, const std::vector<Trial>& trials) {
  const Sequence* best = nullptr;
  double least = 0;
  for (const Trial& candidate : trials) {
    double worst = 0;
    for (const Trial& t : trials)
      worst = std::max(worst, height(all, t.extents, candidate.order) /
                                  static_cast<double>(std::max<std::int64_t>(t.bound, 1)));
    if (best && worst >= least) continue;
    best = &candidate.order;
    least = worst;
  }
  return *best;
}

Dim live_at(std::span<const Lifetime> all, const Dims& sizes, std::int64_t step) {
  Dim sum = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].first <= step && step <= all[i].last) sum = sum + sizes[i];
  return sum;
}

Placement place_symbolic(std::span<const Lifetime> all, const Dims& sizes) {
  std::vector<Trial> trials = trials_of(all, sizes);
  Placement out;
  std::vector<Largest> starts(all.size());
  Largest end, bound;
  out.offsets.assign(all.size(), 0);
  stack(all, best_order(all, trials), [&](std::uint32_t i, const std::set<std::uint32_t>& below) {
    for (std::uint32_t b : below) starts[i].add_all(starts[b], sizes[b]);
    if (starts[i].empty()) starts[i].add(0);
    out.offsets[i] = starts[i].size();
    end.add_all(starts[i], sizes[i]);
  });
  for (const Trial& t : trials) bound.add(live_at(all, sizes, t.fullest));
  out.bytes = end.size();
  out.lower_bound = bound.size();
  return out;
}

}  // namespace

Placement place(std::span<const Lifetime> all) {
  Dims sizes;
  sizes.reserve(all.size());
  bool numbers = true;
  for (const Lifetime& l : all) {
    HONE_ASSERT(l.first <= l.last, "lifetime ends before it begins");
    sizes.push_back(aligned_bytes(l.bytes));
    numbers = numbers && sizes.back().is_number();
  }
  if (!numbers) return place_symbolic(all, sizes);
  std::vector<Extent> extents = extents_at(all, sizes, {});
  std::int64_t bound = fullest_step(extents).second;
  Offsets at = place_numbers(extents, bound);
  Placement out;
  out.offsets.assign(at.begin(), at.end());
  out.bytes = end_of(extents, at);
  out.lower_bound = bound;
  return out;
}

}  // namespace hone
