#include "ir/attr.h"

#include <algorithm>

namespace hone {

void Attrs::set(AttrName name, Attr value) {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                             [](const Entry& e, AttrName n) { return e.first < n; });
  if (at != entries_.end() && at->first == name)
    at->second = std::move(value);
  else
    entries_.insert(at, {name, std::move(value)});
}

const Attr* Attrs::find(AttrName name) const {
  for (const Entry& e : entries_)
    if (e.first == name) return &e.second;
  return nullptr;
}

std::vector<std::int64_t> Attrs::integers(AttrName n) const {
  std::vector<std::int64_t> out;
  for (const Dim& d : dims(n)) out.push_back(d.number());
  return out;
}

std::int64_t Attrs::integer_or(AttrName n, std::int64_t fallback) const {
  return has(n) ? integer(n) : fallback;
}
double Attrs::real_or(AttrName n, double fallback) const { return has(n) ? real(n) : fallback; }

Dims dims_of(std::span<const std::int64_t> list) { return Dims(list.begin(), list.end()); }

}  // namespace hone
