#include "pass/narrow.h"

#include <algorithm>

#include "pass/map_sizes.h"

namespace hone {

namespace {

bool is_refuted(const SizeFact& fact, const SizeMap& map) {
  Dim a = map(fact.a), b = map(fact.b);
  switch (fact.kind) {
    case SizeFact::Kind::equal:
      return prove_equal(a, b) == false;
    case SizeFact::Kind::not_equal:
      return prove_equal(a, b) == true;
    case SizeFact::Kind::less_equal:
      return prove_less(b, a) == true;
    case SizeFact::Kind::greater:
      return prove_less(b, a) == false;
  }
  return false;
}

// Finds the first and last value of one symbol that no fact refutes, by bisection.
class RangeFinder {
 public:
  RangeFinder(std::span<const SizeFact> facts, const SizeMap& map, const Dim& symbol)
      : facts_(facts), map_(map), symbol_(symbol) {}

  // Returns the symbol itself if no bound improves or all values are refuted.
  Dim run() {
    std::optional<std::int64_t> first = find(symbol_.low(), symbol_.high(), true);
    if (!first) return symbol_;
    std::optional<std::int64_t> last = find(*first, symbol_.high(), false);
    return Dim::symbol(symbol_.name(), *first, last.value_or(symbol_.high()));
  }

 private:
  static constexpr int most_tries = 400;

  std::optional<std::int64_t> find(std::int64_t low, std::int64_t high, bool from_below) {
    if (refuted(low, high)) return std::nullopt;
    if (low == high || ++tries_ > most_tries) return from_below ? low : high;
    std::int64_t middle = low + (high - low) / 2;
    std::optional<std::int64_t> at =
        from_below ? find(low, middle, true) : find(middle + 1, high, false);
    if (at) return at;
    return from_below ? find(middle + 1, high, true) : find(low, middle, false);
  }

  bool refuted(std::int64_t low, std::int64_t high) {
    SizeMap now = map_;
    now.symbols.insert_or_assign(symbol_.name(), Dim::symbol(symbol_.name(), low, high));
    return std::any_of(facts_.begin(), facts_.end(),
                       [&](const SizeFact& f) { return is_refuted(f, now); });
  }

  std::span<const SizeFact> facts_;
  const SizeMap& map_;
  Dim symbol_;
  int tries_ = 0;
};

std::vector<SizeFact> facts_about(const Dim& symbol, std::span<const SizeFact> all) {
  std::vector<SizeFact> out;
  for (const SizeFact& f : all)
    for (const Dim* d : {&f.a, &f.b}) {
      Dims in = d->symbols();
      if (std::find(in.begin(), in.end(), symbol) == in.end()) continue;
      out.push_back(f);
      break;
    }
  return out;
}

}  // namespace

Function narrow(const Function& f, std::span<const SizeFact> given) {
  std::vector<SizeFact> facts(given.begin(), given.end());
  for (const DimCheck& c : f.graph().checks()) facts.push_back({SizeFact::Kind::equal, c.a, c.b});
  SizeMap map;
  bool changed = false;
  for (const Dim& s : f.symbols()) {
    std::vector<SizeFact> about = facts_about(s, facts);
    if (about.empty()) continue;
    Dim now = RangeFinder(about, map, s).run();
    changed = changed || now.low() != s.low() || now.high() != s.high();
    map.symbols.insert_or_assign(s.name(), now);
  }
  if (!changed) return f;
  map.pin = true;
  return map_sizes(f, map);
}

}  // namespace hone
