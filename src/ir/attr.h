// Attributes of nodes: named in source, numbered in memory. Not for data: large arrays share their
// Storage.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "type/array.h"
#include "type/type.h"

namespace hone {

class Function;
using FunctionRef = std::shared_ptr<const Function>;

// All attribute names. A name that is not listed here does not compile.
inline constexpr std::string_view attr_names[] = {
    "index",     "name",    "value",      "dims",      "shape",    "dtype",         "axis",
    "axes",      "perm",    "starts",     "steps",     "low",      "high",          "batch",
    "contract",  "strides", "dilations",  "groups",    "pads_low", "pads_high",     "window",
    "kind",      "epsilon", "message",    "then",      "else",     "condition",     "body",
    "number",    "alpha",   "beta",       "exclusive", "reverse",  "channels_last", "hidden",
    "direction", "block",   "count",      "stream",    "symbol",   "mode",          "keep",
    "offset",    "param",   "descending", "trips",     "sizes",    "include_pads",  "scale",
    "softcap",   "causal",  "masked",
};

class AttrName {
 public:
  consteval AttrName(const char* name) : id_(find_or_fail(name)) {}  // NOLINT: spelled as text
  static std::optional<AttrName> find(std::string_view name) {
    for (std::size_t i = 0; i < std::size(attr_names); ++i)
      if (attr_names[i] == name) return AttrName(static_cast<std::uint8_t>(i), 0);
    return std::nullopt;
  }
  std::string_view text() const { return attr_names[id_]; }
  std::uint8_t id() const { return id_; }
  auto operator<=>(const AttrName&) const = default;

 private:
  constexpr AttrName(std::uint8_t id, int) : id_(id) {}
  static consteval std::uint8_t find_or_fail(std::string_view name) {
    for (std::size_t i = 0; i < std::size(attr_names); ++i)
      if (attr_names[i] == name) return static_cast<std::uint8_t>(i);
    throw "add the name to attr_names in ir/attr.h";
  }
  std::uint8_t id_;
};

// An integer, a real, a string, a dtype, a list of sizes (also used for lists of integers), a
// closed Function or an array.
using Attr = std::variant<std::int64_t, double, std::string, DType, Dims, FunctionRef, Array>;

std::uint64_t hash(const Attr&);
// Functions compare by structure, arrays by Storage identity, reals bit for bit.
bool equal(const Attr&, const Attr&);

// A small ordered map from name to value.
class Attrs {
 public:
  struct Entry {
    AttrName first;
    Attr second;
  };
  Attrs() = default;
  Attrs(std::initializer_list<Entry> entries) {
    for (const Entry& e : entries) set(e.first, e.second);
  }

  void set(AttrName, Attr);
  const Attr* find(AttrName) const;
  bool has(AttrName n) const { return find(n) != nullptr; }
  template <class T>
  const T& get(AttrName n) const {
    const Attr* a = find(n);
    HONE_ASSERT(a, "no attribute '", n.text(), "'");
    HONE_ASSERT(std::holds_alternative<T>(*a), "attribute '", n.text(), "' has another type");
    return std::get<T>(*a);
  }
  std::int64_t integer(AttrName n) const { return get<std::int64_t>(n); }
  double real(AttrName n) const { return get<double>(n); }
  const Dims& dims(AttrName n) const { return get<Dims>(n); }
  // A Dims attribute all of whose entries are numbers.
  std::vector<std::int64_t> integers(AttrName n) const;
  std::int64_t integer_or(AttrName n, std::int64_t fallback) const;
  double real_or(AttrName n, double fallback) const;

  std::span<const Entry> entries() const { return entries_; }
  std::uint64_t hash() const;
  bool operator==(const Attrs&) const;

 private:
  std::vector<Entry> entries_;  // sorted by name id
};

// A list of integers as an attribute.
Dims dims_of(std::span<const std::int64_t>);

}  // namespace hone
