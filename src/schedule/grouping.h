// A function whose nodes are divided into groups, as data.
#pragma once

#include <cstdint>
#include <vector>

#include "base/few.h"
#include "ir/function.h"

namespace hone {

// How a node is handled.
enum class Role : std::uint8_t {
  dead,
  param,
  constant,   // a weight: read from its own buffer
  inlined,    // computed from numbers and sizes alone: repeated in every group that uses it
  cloned,     // costs nothing to repeat (broadcast): repeated in every group that uses it
  view,       // a window into its operand's memory
  computed,   // member of one group
  assembled,  // concat or reshape whose operands are written directly into it; a group of its own
  control,    // a group of its own
};

using GroupNodes = Few<NodeId, 2>;  // in wide graphs most groups have one

struct Group {
  GroupNodes nodes;      // operands first
  bool prepare = false;  // depends on weights alone
  enum class Kind : std::uint8_t {
    compute,
    control,   // one control node: if, while, refuse, require
    assemble,  // one assembled node: copies of the operands that are not written in place
  };
  Kind kind = Kind::compute;
};

struct Grouping {
  static constexpr std::uint32_t none = ~0u;
  std::vector<NodeId> order;               // live nodes, operands first
  std::vector<Role> roles;                 // per node
  std::vector<std::uint32_t> first_value;  // per node: number of its first result
  std::uint32_t value_count = 0;
  std::vector<Group> groups;            // in an order in which they can run
  std::vector<std::uint32_t> group_of;  // per node; none unless it has memory of its own
  // Per node: it changes a part of its first operand and may reuse its memory. Empty: none.
  std::vector<bool> updates;
  bool has_replays = false;  // a part is computed again (ops::replay)

  std::uint32_t value_number(Value v) const { return first_value[v.node()] + v.index(); }
  bool is_update(NodeId n) const { return !updates.empty() && updates[n]; }
  // The value whose memory holds v: v itself, or what it is a view of.
  Value base_of(Value v) const {
    while (roles[v.node()] == Role::view) v = v.operand(0);
    return v;
  }
};

}  // namespace hone
