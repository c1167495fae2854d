#include <unordered_map>

#include "ir/measured.h"
#include "ops/host.h"
#include "ops/ops.h"

namespace hone {

std::span<const Op* const> all_ops() {
#define HONE_ADDRESS(name) &ops::name,
  static constexpr const Op* list[] = {HONE_OPS(HONE_ADDRESS) & ops::measure};
#undef HONE_ADDRESS
  return list;
}

bool maps_elements(const Op& op) {
  return (op.kind == OpKind::elementwise && &op != &ops::iota && &op != &ops::random_bits) ||
         &op == &ops::replay;
}

const Op* find_op(std::string_view name) {
  static const std::unordered_map<std::string_view, const Op*> by_name = [] {
    std::unordered_map<std::string_view, const Op*> map;
    for (const Op* op : all_ops()) map.emplace(op->name, op);
    for (const Op* op : host_ops()) map.emplace(op->name, op);
    return map;
  }();
  auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second;
}

}  // namespace hone
