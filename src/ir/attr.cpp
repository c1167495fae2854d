#include "ir/attr.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "ir/function.h"

namespace hone {

std::uint64_t hash(const Attr& a) {
  struct Visitor {
    std::uint64_t operator()(std::int64_t n) const { return static_cast<std::uint64_t>(n); }
    std::uint64_t operator()(double x) const { return std::bit_cast<std::uint64_t>(x); }
    std::uint64_t operator()(const std::string& s) const { return hash_text(s); }
    std::uint64_t operator()(DType t) const { return static_cast<std::uint64_t>(t); }
    std::uint64_t operator()(const Dims& dims) const {
      std::uint64_t h = dims.size();
      for (const Dim& d : dims) h = mix(h, d.hash());
      return h;
    }
    std::uint64_t operator()(const FunctionRef& f) const { return f->hash(); }
    std::uint64_t operator()(const Array& a) const {
      return mix(a.storage().hash(), a.type().hash());
    }
  };
  return mix(a.index(), std::visit(Visitor{}, a));
}

bool equal(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  if (auto* x = std::get_if<double>(&a))
    return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(std::get<double>(b));
  if (auto* f = std::get_if<FunctionRef>(&a)) {
    const FunctionRef& g = std::get<FunctionRef>(b);
    return *f == g || same_structure(**f, *g);
  }
  if (auto* x = std::get_if<Array>(&a)) {
    const Array& y = std::get<Array>(b);
    return x->dtype() == y.dtype() && x->dims() == y.dims() && x->storage() == y.storage();
  }
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, FunctionRef> || std::is_same_v<T, Array>)
          return false;
        else
          return x == std::get<T>(b);
      },
      a);
}

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

std::uint64_t Attrs::hash() const {
  std::uint64_t h = entries_.size();
  for (const Entry& e : entries_) h = mix(mix(h, e.first.id()), hone::hash(e.second));
  return h;
}

bool Attrs::operator==(const Attrs& other) const {
  return std::equal(entries_.begin(), entries_.end(), other.entries_.begin(), other.entries_.end(),
                    [](const Entry& a, const Entry& b) {
                      return a.first == b.first && equal(a.second, b.second);
                    });
}

Dims dims_of(std::span<const std::int64_t> list) { return Dims(list.begin(), list.end()); }

}  // namespace hone
