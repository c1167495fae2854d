#include "compile/size_ranges.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "verify/model/whole.h"
#include "verify/sizes.h"

namespace hone {

namespace {

std::map<std::string, Dim> symbols_of(const Function& f) {
  std::map<std::string, Dim> symbols;
  for (const Type& t : f.param_types())
    for (const Dim& d : t.shape.dims)
      for (const Dim& s : d.symbols()) symbols.emplace(s.name(), s);
  return symbols;
}

double extent_at(const std::map<std::string, Dim>& symbols, const Sizing& sizes) {
  double extent = 1;
  for (const auto& [name, symbol] : symbols) extent *= static_cast<double>(sizes.at(name));
  return extent;
}

Sizing scaled(const std::map<std::string, Dim>& symbols, const Sizing& usual, double factor) {
  Sizing out = usual;
  for (const auto& [name, s] : symbols) {
    const auto wanted = std::llround(static_cast<double>(usual.at(name)) * factor);
    out[name] = std::clamp<std::int64_t>(wanted, std::max<std::int64_t>(s.low(), 1), s.high());
  }
  return out;
}

double ms_of(const Choice& c, std::string_view candidate) {
  const auto it =
      std::ranges::find(c.records, candidate, [](const CandidateRecord& r) { return r.name; });
  return it == c.records.end() || !it->refused.empty() ? -1 : it->ms;
}

// Extra ms of the usual choice at these sizes; 0 if it was not timed.
double loss(const Choice& usual, const Choice& here) {
  if (usual.base == here.base) return 0;
  const double with_usual = ms_of(here, usual.base), best = ms_of(here, here.base);
  return with_usual < 0 || best < 0 ? 0 : std::max(0.0, with_usual - best);
}

// The choices for other sizes; empty when the usual ones are as good.
std::optional<std::vector<Choice>> better_choices(std::span<const std::uint32_t> specs,
                                                  const std::vector<Choice>& usual,
                                                  const std::vector<Choice>& here) {
  constexpr double worth_a_variant = 0.05;
  double lost = 0, all = 0;
  for (std::uint32_t s : specs) {
    lost += loss(usual[s], here[s]);
    all += std::max(0.0, ms_of(here[s], here[s].base));
  }
  if (lost <= worth_a_variant * all) return std::nullopt;
  std::vector<Choice> out;
  for (std::size_t s = 0; s < usual.size(); ++s)
    out.push_back(loss(usual[s], here[s]) > 0 ? here[s] : usual[s]);
  return out;
}

bool are_same(const std::vector<Choice>& a, const std::vector<Choice>& b) {
  return std::ranges::equal(a, b, {}, &Choice::base, &Choice::base);
}

}  // namespace

std::vector<Sizing> sizes_beside(const Function& f, const std::vector<Guard>& conditions,
                                 const Sizing& usual) {
  constexpr double factors[] = {8, 1.0 / 8, 64, 1.0 / 64};
  constexpr std::size_t most = 2;
  constexpr double least_ratio = 3, largest_extent = 0x1p60;
  constexpr std::int64_t most_flops = 4'000'000'000;
  const std::map<std::string, Dim> symbols = symbols_of(f);
  double largest = 1;
  for (const auto& [name, s] : symbols) largest *= static_cast<double>(s.high());
  std::vector<Sizing> out;
  if (symbols.empty() || largest > largest_extent) return out;
  const Dim flops = flops_of(f);
  std::vector<double> extents = {extent_at(symbols, usual)};
  for (double factor : factors) {
    Sizing sizes = scaled(symbols, usual, factor);
    const double extent = extent_at(symbols, sizes);
    const bool is_near = std::ranges::any_of(
        extents, [&](double e) { return std::max(e, extent) < least_ratio * std::min(e, extent); });
    if (is_near || !guards_hold(conditions, sizes) || flops_at(flops, sizes) > most_flops) continue;
    extents.push_back(extent);
    out.push_back(std::move(sizes));
    if (out.size() == most) break;
  }
  return out;
}

std::vector<SizeRange> size_ranges(const Function& f, std::span<const std::uint32_t> specs,
                                   const SizedChoices& usual,
                                   std::span<const SizedChoices> others) {
  struct Served {
    double extent;
    Sizing sizes;
    std::vector<Choice> choices;
  };
  const std::map<std::string, Dim> symbols = symbols_of(f);
  std::vector<Served> served = {{extent_at(symbols, usual.sizes), usual.sizes, usual.choices}};
  for (const SizedChoices& o : others) {
    auto better = better_choices(specs, usual.choices, o.choices);
    served.push_back(
        {extent_at(symbols, o.sizes), o.sizes, better ? std::move(*better) : usual.choices});
  }
  std::ranges::sort(served, {}, &Served::extent);
  Dim extent = 1;
  if (served.size() > 1)
    for (const auto& [name, symbol] : symbols) extent = extent * symbol;
  std::vector<SizeRange> out;
  std::optional<Dim> above;
  for (std::size_t i = 0; i < served.size();) {
    std::size_t next = i + 1;
    while (next < served.size() && are_same(served[i].choices, served[next].choices)) ++next;
    SizeRange& range = out.emplace_back();
    range.sizes = std::move(served[i].sizes);
    range.choices = std::move(served[i].choices);
    if (above) range.guards.push_back({Guard::Kind::greater, extent, *above});
    if (next < served.size()) {
      // A point between the two timed sizes.
      above = Dim(std::llround(std::sqrt(served[next - 1].extent * served[next].extent)));
      range.guards.push_back({Guard::Kind::less_equal, extent, *above});
    }
    i = next;
  }
  return out;
}

}  // namespace hone
