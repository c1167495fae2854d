// Groups as closed Functions over parameters by position. Equal groups share one: groups are
// compared inside the whole function, and only the first of each kind is copied.
#pragma once

#include <span>
#include <vector>

#include "ir/function.h"
#include "schedule/group.h"

namespace hone {

struct Extracted {
  static constexpr std::uint32_t none = ~0u;
  std::uint32_t function = none;   // in Extraction::functions; none: a control node, an assembly
  std::span<const Value> params;   // values of the whole function, in memory or views of such
  std::span<const Value> results;  // values of members that are read outside the group
};

struct Extraction {
  Extraction() = default;
  Extraction(Extraction&&) = default;
  Extraction& operator=(Extraction&&) = default;

  std::vector<Extracted> groups;  // one per group, in order
  std::vector<Function> functions;
  Values values;  // what the groups' spans point into
};

Extraction extract(const Function&, const Grouping&);

}  // namespace hone
