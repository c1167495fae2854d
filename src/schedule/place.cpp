#include "schedule/place.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/checked.h"
#include "base/error.h"

namespace hone {

namespace {

constexpr std::int64_t alignment = 64;
constexpr std::size_t most_for_search = 1024;  // beyond, one pass in order of time

struct Extent {
  std::int64_t bytes, first, last;
};

using Offsets = std::vector<std::int64_t>;
using Sequence = std::vector<std::uint32_t>;

bool meet(const Extent& a, const Extent& b) { return a.first <= b.last && b.first <= a.last; }

std::int64_t end_of(const std::vector<Extent>& all, const Offsets& at) {
  std::int64_t end = 0;
  for (std::size_t i = 0; i < all.size(); ++i) end = std::max(end, at[i] + all[i].bytes);
  return end;
}

// The lowest gap between what is placed already (sorted by offset) and lives at the same time.
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

// Free memory by offset, and by size for the best fit.
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
  // No hole is large enough: a hole at the end grows, or the arena does.
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

// As a running program would allocate: best fit, in order of time.
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

// Moves whatever reaches the top to the front of the sequence and places again: the block that a
// good order left for last is the one to begin with.
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

// The step at which most bytes live, and how many.
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

std::vector<Extent> evaluate(std::span<const Lifetime> all, const std::vector<Dim>& sizes,
                             const std::function<std::int64_t(const Dim&)>& symbol) {
  std::vector<Extent> out;
  out.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::int64_t bytes = 0;
    if (auto number = sizes[i].as_number()) {
      bytes = *number;
    } else {
      std::map<std::string, std::int64_t, std::less<>> values;
      for (const Dim& s : sizes[i].symbols()) values[s.name()] = symbol(s);
      bytes = sizes[i].eval([&](std::string_view name) { return values.find(name)->second; });
    }
    out.push_back({bytes, all[i].first, all[i].last});
  }
  return out;
}

constexpr std::int64_t typical_size = 16, large_size = 1024;
std::int64_t clamp_to(const Dim& symbol, std::int64_t size) {
  return std::clamp(size, symbol.low(), symbol.high());
}

std::vector<DimExpr::Term> terms_of(const Dim& d) {
  if (auto n = d.as_number()) return {{*n, {}}};
  if (d.expr()->kind == DimExpr::Kind::sum) return d.expr()->terms;
  return {{1, {d}}};
}

Dim product_of(const DimExpr::Term& t) {
  Dim out = t.factor;
  for (const Dim& a : t.atoms) out = out * a;
  return out;
}

// At least as large as both, and no longer to write than both: the larger factor of each term.
// Atoms must not be negative; else the exact maximum, which does grow.
Dim join(const Dim& a, const Dim& b) {
  Dim larger = max(a, b);
  if (larger == a || larger == b) return larger;
  std::vector<DimExpr::Term> p = terms_of(a), q = terms_of(b);
  Dim out = 0;
  auto low = [](const DimExpr::Term& t) { return product_of({1, t.atoms}).low(); };
  for (DimExpr::Term& t : p) {
    for (DimExpr::Term& u : q)
      if (t.atoms == u.atoms) {
        t.factor = std::max(t.factor, u.factor);
        u.factor = 0;
      }
    if (low(t) < 0) return larger;
    out = out + product_of(t);
  }
  for (const DimExpr::Term& u : q) {
    if (low(u) < 0) return larger;
    if (u.factor > 0) out = out + product_of(u);
  }
  return out;
}

// For every time, what lies on top of what was placed so far.
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

// Keeps who lies above whom in a placement of numbers, and says it in Dims: each block begins where
// everything below it has ended, whatever the sizes.
std::vector<Dim> stack_symbolic(std::span<const Lifetime> all, const std::vector<Dim>& sizes,
                                const std::vector<Extent>& extents, const Offsets& at) {
  std::vector<Dim> offsets(all.size(), 0);
  auto order = sorted(all.size(), [&](auto a, auto b) {
    return at[a] != at[b] ? at[a] < at[b] : extents[a].bytes < extents[b].bytes;
  });
  Skyline skyline;
  for (std::uint32_t i : order) {
    std::set<std::uint32_t> below;
    skyline.visit(all[i].first, all[i].last, [&](std::uint32_t b) { below.insert(b); });
    Dim offset = 0;
    for (std::uint32_t b : below) offset = join(offset, offsets[b] + sizes[b]);
    offsets[i] = offset;
    skyline.cover(all[i].first, all[i].last, i);
  }
  return offsets;
}

Dim live_at(std::span<const Lifetime> all, const std::vector<Dim>& sizes, std::int64_t step) {
  Dim sum = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].first <= step && step <= all[i].last) sum = sum + sizes[i];
  return sum;
}

// The sum at the fullest steps for small, typical and large sizes: a lower bound for all sizes.
Dim symbolic_bound(std::span<const Lifetime> all, const std::vector<Dim>& sizes) {
  Dim bound = 0;
  for (std::int64_t size : {std::int64_t{0}, typical_size, large_size}) {
    auto extents = evaluate(all, sizes, [&](const Dim& s) { return clamp_to(s, size); });
    bound = max(bound, live_at(all, sizes, fullest_step(extents).first));
  }
  return bound;
}

}  // namespace

Placement place(std::span<const Lifetime> all) {
  std::vector<Dim> sizes;
  sizes.reserve(all.size());
  bool numbers = true;
  for (const Lifetime& l : all) {
    HONE_ASSERT(l.first <= l.last, "lifetime ends before it begins");
    sizes.push_back(ceil_div(l.bytes, alignment) * Dim(alignment));
    numbers = numbers && sizes.back().is_number();
  }
  auto typical = [](const Dim& s) { return clamp_to(s, typical_size); };
  std::vector<Extent> extents = evaluate(all, sizes, typical);
  std::int64_t bound = fullest_step(extents).second;
  Offsets at = place_numbers(extents, bound);
  Placement out;
  if (numbers) {
    out.offsets.assign(at.begin(), at.end());
    out.bytes = end_of(extents, at);
    out.lower_bound = bound;
    return out;
  }
  out.offsets = stack_symbolic(all, sizes, extents, at);
  for (std::size_t i = 0; i < all.size(); ++i)
    out.bytes = join(out.bytes, out.offsets[i] + sizes[i]);
  out.lower_bound = symbolic_bound(all, sizes);
  return out;
}

}  // namespace hone
