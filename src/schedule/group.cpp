#include "schedule/group.h"

#include "schedule/fuse.h"
#include "schedule/lifetimes.h"
#include "schedule/roles.h"
#include "schedule/updates.h"

namespace hone {

namespace {

// True if the node gets its own memory and so a group: also a number or broadcast that is read.
bool is_member(Role role, bool read) {
  return role == Role::computed || role == Role::control || role == Role::assembled ||
         (read && (role == Role::inlined || role == Role::cloned));
}

Group::Kind kind_of(Role role) {
  if (role == Role::control) return Group::Kind::control;
  return role == Role::assembled ? Group::Kind::assemble : Group::Kind::compute;
}

}  // namespace

Grouping group(const Function& f, const GroupOptions& options) {
  Grouping g;
  g.order = live_nodes(f);
  g.first_value.assign(f.graph().node_count(), Grouping::none);
  g.group_of.assign(f.graph().node_count(), Grouping::none);
  std::vector<bool> weights = find_weight_nodes(f, g);
  find_roles(f, weights, !options.one_op_groups, g);
  find_updates(f, weights, options.owned, g);
  std::vector<bool> read = find_read_nodes(f, g);
  for (NodeId n : g.order) {
    g.first_value[n] = g.value_count;
    g.value_count += static_cast<std::uint32_t>(f.graph().result_count(n));
    if (!is_member(g.roles[n], read[n])) continue;
    g.group_of[n] = static_cast<std::uint32_t>(g.groups.size());
    g.groups.push_back({{n}, weights[n], kind_of(g.roles[n])});
  }
  if (!options.one_op_groups) fuse(f, read, options.rows_into_products, g);
  shorten_lifetimes(f, options.owned, g);
  order_writers(f, options.owned, g);
  return g;
}

}  // namespace hone
