#include "schedule/place_numbers.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace hone {

std::int64_t end_of(const std::vector<Extent>& all, const Offsets& at) {
  std::int64_t end = 0;
  for (std::size_t i = 0; i < all.size(); ++i) end = std::max(end, at[i] + all[i].bytes);
  return end;
}

namespace {

constexpr std::size_t most_for_search = 1024;  // beyond that, one pass in order of time

bool meet(const Extent& a, const Extent& b) { return a.first <= b.last && b.first <= a.last; }

// The lowest gap between blocks that are placed already (sorted by offset) and live at the same
// time.
std::int64_t lowest_gap(const std::vector<Extent>& all, const Offsets& at, const Sequence& placed,
                        const Extent& e) {
  std::int64_t low = 0;
  for (std::uint32_t p : placed) {
    if (!meet(all[p], e)) continue;
    if (at[p] - low >= e.bytes) break;
    low = std::max(low, at[p] + all[p].bytes);
  }
  return low;
}

Offsets first_fit(const std::vector<Extent>& all, const Sequence& sequence) {
  Offsets at(all.size(), 0);
  Sequence placed;
  for (std::uint32_t i : sequence) {
    at[i] = lowest_gap(all, at, placed, all[i]);
    auto above = [&](std::uint32_t a, std::uint32_t b) { return at[a] < at[b]; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i, above), i);
  }
  return at;
}

// Free memory, indexed by offset, and by size for the best fit.
class FreeList {
 public:
  std::int64_t take(std::int64_t bytes) {
    auto hole = by_size_.lower_bound({bytes, 0});
    if (hole == by_size_.end()) return extend(bytes);
    auto [size, offset] = *hole;
    erase(offset, size);
    if (size > bytes) insert(offset + bytes, size - bytes);
    return offset;
  }

  void give(std::int64_t offset, std::int64_t bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + bytes) {
      bytes += next->second;
      erase(next->first, next->second);
    }
    auto before = by_offset_.lower_bound(offset);
    if (before != by_offset_.begin() && (--before)->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      erase(before->first, before->second);
    }
    insert(offset, bytes);
  }

 private:
  // Called if no hole is large enough: extends a hole at the end, or the arena.
  std::int64_t extend(std::int64_t bytes) {
    std::int64_t offset = end_;
    if (!by_offset_.empty()) {
      auto last = std::prev(by_offset_.end());
      if (last->first + last->second == end_) {
        offset = last->first;
        erase(last->first, last->second);
      }
    }
    end_ = offset + bytes;
    return offset;
  }

  void insert(std::int64_t offset, std::int64_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void erase(std::int64_t offset, std::int64_t bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<std::int64_t, std::int64_t> by_offset_;
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;
  std::int64_t end_ = 0;
};

template <class Less>
Sequence sorted(std::size_t n, Less less) {
  Sequence s(n);
  std::iota(s.begin(), s.end(), 0u);
  std::stable_sort(s.begin(), s.end(), less);
  return s;
}

// Like the allocations of a running program: best fit, in order of time.
Offsets best_fit_by_time(const std::vector<Extent>& all) {
  Offsets at(all.size(), 0);
  auto starts = sorted(all.size(), [&](auto a, auto b) { return all[a].first < all[b].first; });
  auto ends = sorted(all.size(), [&](auto a, auto b) { return all[a].last < all[b].last; });
  FreeList free;
  std::size_t done = 0;
  for (std::uint32_t i : starts) {
    for (; done < ends.size() && all[ends[done]].last < all[i].first; ++done)
      if (all[ends[done]].bytes > 0) free.give(at[ends[done]], all[ends[done]].bytes);
    if (all[i].bytes > 0) at[i] = free.take(all[i].bytes);
  }
  return at;
}

std::vector<Sequence> sequences(const std::vector<Extent>& all) {
  auto size = [&](auto a, auto b) { return all[a].bytes > all[b].bytes; };
  auto length = [&](std::uint32_t i) { return all[i].last - all[i].first + 1; };
  auto area = [&](auto a, auto b) {
    return static_cast<double>(all[a].bytes) * static_cast<double>(length(a)) >
           static_cast<double>(all[b].bytes) * static_cast<double>(length(b));
  };
  auto longest = [&](auto a, auto b) {
    return length(a) != length(b) ? length(a) > length(b) : all[a].bytes > all[b].bytes;
  };
  auto start = [&](auto a, auto b) {
    return all[a].first != all[b].first ? all[a].first < all[b].first : all[a].bytes > all[b].bytes;
  };
  auto end = [&](auto a, auto b) {
    return all[a].last != all[b].last ? all[a].last > all[b].last : all[a].bytes > all[b].bytes;
  };
  std::size_t n = all.size();
  return {sorted(n, size), sorted(n, area), sorted(n, longest), sorted(n, start), sorted(n, end)};
}

// Moves the blocks that reach the top to the front of the sequence and places all again: a block
// that a good order left for last should come first.
Offsets improve(const std::vector<Extent>& all, Sequence sequence, Offsets best,
                std::int64_t enough) {
  constexpr int most_rounds = 48;
  std::int64_t best_end = end_of(all, best);
  Offsets at = best;
  for (int round = 0; round < most_rounds && best_end > enough; ++round) {
    std::int64_t end = end_of(all, at);
    auto top = std::find_if(sequence.rbegin(), sequence.rend(),
                            [&](std::uint32_t i) { return at[i] + all[i].bytes == end; });
    std::rotate(sequence.begin(), std::prev(top.base()), top.base());
    at = first_fit(all, sequence);
    if (std::int64_t now = end_of(all, at); now < best_end) {
      best = at;
      best_end = now;
    }
  }
  return best;
}

}  // namespace

Offsets place_numbers(const std::vector<Extent>& all, std::int64_t enough) {
  Offsets best = best_fit_by_time(all);
  if (all.size() > most_for_search) return best;
  std::int64_t best_end = end_of(all, best);
  Sequence best_sequence;
  for (Sequence& s : sequences(all)) {
    if (best_end <= enough) return best;
    Offsets at = first_fit(all, s);
    if (std::int64_t end = end_of(all, at); best_sequence.empty() || end < best_end) {
      if (end < best_end) best = at;
      best_end = std::min(best_end, end);
      best_sequence = std::move(s);
    }
  }
  return improve(all, std::move(best_sequence), std::move(best), enough);
}

std::pair<std::int64_t, std::int64_t> fullest_step(const std::vector<Extent>& all) {
  std::map<std::int64_t, std::int64_t> change;
  for (const Extent& e : all) {
    change[e.first] += e.bytes;
    change[e.last + 1] -= e.bytes;
  }
  std::int64_t now = 0, most = 0, step = 0;
  for (auto [at, by] : change) {
    now += by;
    if (now > most) most = now, step = at;
  }
  return {step, most};
}

}  // namespace hone
