#include "report/number.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace hone {

Json rounded(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.5g", x);
  return std::strtod(text, nullptr);
}

Json interval(const Interval& i) {
  return Json::Array{rounded(i.median), rounded(i.low), rounded(i.high)};
}

Json known_size(const Dim& d, const Sizing& sizes) {
  const Dims symbols = d.symbols();
  const bool known =
      std::ranges::all_of(symbols, [&](const Dim& s) { return sizes.contains(s.name()); });
  return known ? Json(size_of(d, sizes)) : Json();
}

}  // namespace hone
