#include "verify/sizes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"

namespace hone {

namespace {

// False if a side exceeds 64 bits.
bool holds_at(const Guard& g, const Sizing& sizes) {
  try {
    return holds(g, size_of(g.a, sizes), size_of(g.b, sizes));
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

bool guards_hold(const std::vector<Guard>& guards, const Sizing& sizes) {
  return std::ranges::all_of(guards, [&](const Guard& g) { return holds_at(g, sizes); });
}

// A larger bound is that of all possible data, as for a pad's amounts: it says nothing about usual
// sizes, and several axes of half this size would not fit in memory.
constexpr std::int64_t most_told_by_bound = 4096, few = 17;

namespace {

// Empty if the check has a size that is not in `sizes`, or exceeds 64 bits.
std::optional<bool> check_holds(const DimCheck& c, const Sizing& sizes) {
  for (const Dim& d : {c.a, c.b})
    for (const Dim& s : d.symbols())
      if (!sizes.contains(s.name())) return std::nullopt;
  try {
    return size_of(c.a, sizes) == size_of(c.b, sizes);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

std::int64_t count_broken(std::span<const DimCheck> checks, const Sizing& sizes) {
  return std::ranges::count_if(
      checks, [&](const DimCheck& c) { return check_holds(c, sizes) == std::optional(false); });
}

// Gives the symbols values up to their current ones, so that the check holds: all 1 at first, then
// each the largest that leaves a solution for the last, like the axes of a reshaped tensor.
void satisfy(const DimCheck& c, const std::vector<Dim>& symbols, Sizing& sizes) {
  const Sizing before = sizes;
  for (const Dim& s : symbols) sizes[s.name()] = std::max<std::int64_t>(s.low(), 1);
  const auto value = [&](const Dim& d) { return size_of(d, sizes); };
  // The value of `s` for which the check holds.
  const auto solved = [&](const Dim& s) -> std::optional<std::int64_t> {
    const std::int64_t old = sizes[s.name()];
    const std::int64_t a = value(c.a), b = value(c.b);
    const auto holds_at = [&](std::int64_t n) {
      if (n < s.low() || n > s.high()) return false;
      sizes[s.name()] = n;
      const bool holds = value(c.a) == value(c.b);
      sizes[s.name()] = old;
      return holds;
    };
    for (const std::int64_t n : {old, a > 0 ? b / a * old : old, b > 0 ? a / b * old : old, a, b})
      if (holds_at(n)) return n;
    return std::nullopt;
  };
  const Dim& last = symbols.front();
  for (std::size_t i = symbols.size(); i-- > 1;) {
    std::int64_t& size = sizes[symbols[i].name()];
    const std::int64_t least = size;
    for (size = std::max(before.at(symbols[i].name()), least); size > least && !solved(last);
         --size) {
    }
  }
  if (const std::optional<std::int64_t> n = solved(last))
    sizes[last.name()] = *n;
  else
    sizes = before;
}

}  // namespace

bool checks_hold(std::span<const DimCheck> checks, const Sizing& sizes) {
  return count_broken(checks, sizes) == 0;
}

Sizing with_measured(Sizing sizes, const std::vector<DimBound>& measured,
                     std::span<const DimCheck> checks) {
  std::set<std::string> settled;  // may no longer change
  // Later bounds and checks contain earlier symbols.
  for (const DimBound& b : measured) {
    const std::int64_t most = std::min(size_of(b.most, sizes), b.symbol.high());
    const std::int64_t typical = most > most_told_by_bound ? few : most - most / 2;
    sizes[b.symbol.name()] = std::max(b.symbol.low(), typical);
    for (const DimCheck& c : checks) {
      if (!holds_symbol(c.a, b.symbol.name()) && !holds_symbol(c.b, b.symbol.name())) continue;
      const std::optional<bool> holds = check_holds(c, sizes);
      std::vector<Dim> known, open;
      for (const DimBound& m : measured) {
        const std::string name(m.symbol.name());
        if (!sizes.contains(name) || (!holds_symbol(c.a, name) && !holds_symbol(c.b, name)))
          continue;
        known.push_back(m.symbol);
        if (!settled.contains(name)) open.push_back(m.symbol);
      }
      // Also changes symbols that a bound settled, if no other check then fails.
      for (const std::vector<Dim>* symbols : {&open, &known}) {
        if (symbols->empty() || check_holds(c, sizes) != std::optional(false)) continue;
        const Sizing before = sizes;
        satisfy(c, *symbols, sizes);
        if (count_broken(checks, sizes) >= count_broken(checks, before)) sizes = before;
      }
      if (!holds) continue;
      for (const Dim& s : open) settled.insert(std::string(s.name()));
    }
  }
  return sizes;
}

std::vector<Sizing> other_measured(const Sizing& sizes, const std::vector<DimBound>& measured,
                                   std::span<const DimCheck> checks) {
  constexpr std::int64_t least = 3, apart = 2;
  std::vector<Sizing> out;
  const auto add = [&](const auto& value) {
    Sizing made = sizes;
    for (std::size_t i = 0; i < measured.size(); ++i) {
      const DimBound& b = measured[i];
      const std::int64_t most = std::min(size_of(b.most, made), b.symbol.high());
      if (most < b.symbol.low()) return;
      made[b.symbol.name()] = std::clamp(value(static_cast<std::int64_t>(i)), b.symbol.low(), most);
    }
    if (checks_hold(checks, made) && std::ranges::find(out, made) == out.end())
      out.push_back(std::move(made));
  };
  const auto last = static_cast<std::int64_t>(measured.size()) - 1;
  add([&](std::int64_t i) { return least + apart * i; });
  add([&](std::int64_t i) { return least + apart * (last - i); });
  add([&](std::int64_t) { return most_told_by_bound; });
  return out;
}

namespace {

std::map<std::string, Dim> symbols_of(const std::vector<Type>& types) {
  std::map<std::string, Dim> symbols;
  for (const Type& t : types)
    for (const Dim& d : t.shape.dims)
      for (const Dim& s : d.symbols()) symbols.emplace(s.name(), s);
  return symbols;
}

}  // namespace

std::optional<Sizing> odd_sizes(const std::vector<Type>& types, const std::vector<Guard>& guards,
                                std::int64_t least) {
  Sizing sizes;
  for (auto& [name, s] : symbols_of(types)) {
    sizes[name] = std::clamp(least, s.low(), s.high());
    least += 2;
  }
  return guards_hold(guards, sizes) ? std::optional(sizes) : std::nullopt;
}

namespace {

constexpr std::int64_t dense = 4096;  // smaller sizes are all tried

// Starts with the least sizes. Changes one symbol at a time to the size at which most conditions
// hold, until all hold: usually each condition reads few sizes.
std::optional<Sizing> small_sizes(const std::map<std::string, Dim>& symbols,
                                  const std::vector<Guard>& guards) {
  Sizing sizes;
  for (auto& [name, s] : symbols) sizes[name] = std::max<std::int64_t>(s.low(), 1);
  std::vector<std::int64_t> numbers;  // that occur in conditions
  for (const Guard& g : guards)
    for (const Dim& d : {g.a, g.b})
      if (d.is_number()) numbers.push_back(d.number());
  const auto count_held = [&] {
    return std::ranges::count_if(guards, [&](const Guard& g) { return holds_at(g, sizes); });
  };
  std::int64_t held = count_held();
  const auto all = std::ssize(guards);
  for (bool is_better = true; is_better && held < all;) {
    is_better = false;
    for (auto& [name, s] : symbols) {
      std::int64_t best = sizes[name];
      const auto consider = [&](std::int64_t n) {
        if (held == all || n < s.low() || n > s.high()) return;
        sizes[name] = n;
        if (const std::int64_t now = count_held(); now > held)
          held = now, best = n, is_better = true;
      };
      for (std::int64_t n = s.low(); n <= std::min<std::int64_t>(s.high(), dense); ++n) consider(n);
      for (std::int64_t n : numbers) consider(n);
      sizes[name] = best;
    }
  }
  return held == all ? std::optional(sizes) : std::nullopt;
}

// Finds sizes for conditions that no single size satisfies, such as a bound on a product: reduces
// by how much they fail, one or two symbols at a time, from several starts.
class SizeSearch {
 public:
  SizeSearch(const std::vector<Type>& types, const std::map<std::string, Dim>& symbols,
             const std::vector<Guard>& guards)
      : types_(types), symbols_(symbols), guards_(guards) {}

  std::optional<Sizing> run() {
    // Equal sizes need the least memory for a bound on a product.
    for (std::int64_t n = 1; n <= most_equal; n += std::max<std::int64_t>(1, n / 8))
      if (const Sizing sizes = all_at(n); distance(sizes) == 0) return sizes;
    for (const std::int64_t start : {1, 2, 16, 256, 4096})
      if (std::optional<Sizing> found = descend(all_at(start))) return found;
    return std::nullopt;
  }

 private:
  static constexpr std::int64_t most_equal = std::int64_t{1} << 31;
  static constexpr double most_bytes = 0x1p30;

  Sizing all_at(std::int64_t n) const {
    Sizing sizes;
    for (const auto& [name, s] : symbols_) sizes[name] = std::clamp(n, s.low(), s.high());
    return sizes;
  }

  // Grows slowly, so that one large difference does not hide small ones.
  static double growth(double difference) { return 1 + std::log2(1 + difference); }

  double distance(const Guard& g, const Sizing& sizes) {
    --left_;
    constexpr double unknown = 100;  // a product exceeds 64 bits
    try {
      const std::int64_t a = size_of(g.a, sizes), b = size_of(g.b, sizes);
      if (holds(g, a, b)) return 0;
      return growth(std::abs(static_cast<double>(a) - static_cast<double>(b)));
    } catch (const UserError&) {
      return unknown;
    }
  }

  // 0: all conditions hold, and arrays of these sizes fit.
  double distance(const Sizing& sizes) {
    double out = 0;
    for (const Guard& g : guards_) out += distance(g, sizes);
    double bytes = 0;
    for (const Type& t : types_) {
      double of_type = byte_size(t.dtype);
      for (const Dim& d : t.shape.dims) of_type *= static_cast<double>(size_of(d, sizes));
      bytes += of_type;
    }
    return bytes > most_bytes ? out + growth(bytes / most_bytes) : out;
  }

  std::optional<Sizing> descend(Sizing sizes) {
    double here = distance(sizes);
    while (here > 0) {
      Sizing best = sizes;
      double least = here;
      const auto consider = [&](const Sizing& next) {
        if (const double there = distance(next); there < least) least = there, best = next;
      };
      for (const Sizing& next : neighbours(sizes)) consider(next);
      // Two at once, as where an equality must be kept.
      if (least == here)
        for (const Sizing& next : neighbours(sizes)) {
          for (const Sizing& after : neighbours(next)) consider(after);
          if (left_ <= 0) break;
        }
      if (left_ <= 0 || least == here) return std::nullopt;
      sizes = std::move(best);
      here = least;
    }
    return sizes;
  }

  std::vector<Sizing> neighbours(const Sizing& sizes) {
    std::vector<Sizing> out;
    for (const auto& [name, s] : symbols_)
      for (const std::int64_t n : moves(name, s, sizes)) {
        out.push_back(sizes);
        out.back()[name] = n;
      }
    return out;
  }

  // Neighbours, powers of two, and where a condition that fails begins to hold.
  std::set<std::int64_t> moves(const std::string& name, const Dim& s, const Sizing& sizes) {
    const std::int64_t now = sizes.at(name);
    std::set<std::int64_t> out = {now - 1, now + 1, now / 2, 2 * now, s.low(), s.high()};
    for (const Guard& g : guards_)
      if ((holds_symbol(g.a, name) || holds_symbol(g.b, name)) && distance(g, sizes) > 0)
        add_changes(g, name, s, sizes, out);
    std::erase_if(out, [&](std::int64_t n) { return n == now || n < s.low() || n > s.high(); });
    return out;
  }

  // Between two powers of two at which a - b has different signs, finds where the sign changes.
  void add_changes(const Guard& g, const std::string& name, const Dim& s, Sizing sizes,
                   std::set<std::int64_t>& out) {
    const auto sign = [&](std::int64_t n) -> std::optional<int> {
      --left_;
      sizes[name] = n;
      try {
        const std::int64_t a = size_of(g.a, sizes), b = size_of(g.b, sizes);
        return (a > b) - (a < b);
      } catch (const UserError&) {
        return std::nullopt;
      }
    };
    for (std::int64_t low = s.low(); low < s.high() && left_ > 0;) {
      std::int64_t high = low > s.high() / 2 ? s.high() : std::max<std::int64_t>(2 * low, 1);
      const std::int64_t next = high;
      const std::optional<int> at_low = sign(low), at_high = sign(high);
      if (!at_high) break;
      while (at_low != at_high && high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        (sign(middle) == at_low ? low : high) = middle;
      }
      if (at_low != at_high) out.insert({low, high});
      low = next;
    }
  }

  const std::vector<Type>& types_;
  const std::map<std::string, Dim>& symbols_;
  const std::vector<Guard>& guards_;
  int left_ = 200'000;  // evaluations of a condition
};

}  // namespace

std::optional<Sizing> sample_sizes(const std::vector<Type>& types,
                                   const std::vector<Guard>& guards) {
  const std::map<std::string, Dim> symbols = symbols_of(types);
  if (std::optional<Sizing> small = small_sizes(symbols, guards)) return small;
  return SizeSearch(types, symbols, guards).run();
}

}  // namespace hone
