#include "runtime/sizes.h"

#include <algorithm>

#include "base/error.h"

namespace hone {

namespace {

Dims sorted(Dims out) {
  std::sort(out.begin(), out.end(), [](const Dim& a, const Dim& b) { return a.name() < b.name(); });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

Dims input_symbols(const PlanEntry& entry) {
  Dims out;
  for (const PlanParam& p : entry.params)
    for (const Dim& d : p.type.shape.dims)
      if (d.is_symbol()) out.push_back(d);
  return sorted(std::move(out));
}

Dims all_symbols(const PlanEntry& entry) {
  Dims out = input_symbols(entry);
  for (const Variant& v : entry.variants)
    for (const DimBound& b : v.measured) out.push_back(b.symbol);
  return sorted(std::move(out));
}

std::int64_t evaluate(const Dim& d, std::span<const Dim> symbols,
                      std::span<const std::int64_t> values) {
  if (d.is_number()) return d.number();
  return d.eval([&](std::string_view name) {
    auto it = std::lower_bound(symbols.begin(), symbols.end(), name,
                               [](const Dim& s, std::string_view n) { return s.name() < n; });
    if (it == symbols.end() || it->name() != name)
      throw UserError("plan: size '", name, "' is given by no input; compile the plan again");
    const std::int64_t n = values[static_cast<std::size_t>(it - symbols.begin())];
    if (n == not_known)
      throw UserError("plan: size '", name,
                      "' is used before data decides it; compile the plan again");
    return n;
  });
}

}  // namespace hone
