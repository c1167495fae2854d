// What the groups of a grouping read.
#pragma once

#include <vector>

#include "schedule/grouping.h"

namespace hone {

// Calls f with every value in memory that a group reads, directly or through nodes that it repeats.
template <class F>
void for_each_read(const Graph& graph, const Grouping& g, std::uint32_t group, const F& f) {
  std::vector<Value> open;
  for (NodeId n : g.groups[group].nodes)
    for (const Value& v : graph.operands(n)) open.push_back(v);
  while (!open.empty()) {
    const Value v = open.back();
    open.pop_back();
    const Role role = g.roles[v.node()];
    if (role == Role::inlined) continue;
    if (role == Role::view || role == Role::cloned)
      for (const Value& below : v.operands()) open.push_back(below);
    else if (g.group_of[v.node()] != group)
      f(v);
  }
}

// Puts the groups in this order.
inline void reorder(Grouping& g, const std::vector<std::uint32_t>& order) {
  std::vector<Group> groups;
  for (std::uint32_t at : order) groups.push_back(std::move(g.groups[at]));
  g.groups = std::move(groups);
  for (std::uint32_t i = 0; i < g.groups.size(); ++i)
    for (NodeId n : g.groups[i].nodes) g.group_of[n] = i;
}

}  // namespace hone
