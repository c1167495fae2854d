#include "kernel/nest/block_writer.h"

#include <algorithm>

#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

Block BlockWriter::of(const Body& body) {
  Block outer = std::exchange(block_, {});
  if (body) body();
  return std::exchange(block_, std::move(outer));
}

void BlockWriter::loop(LoopKind kind, const Dim& extent,
                       const std::function<void(const Dim&)>& body) {
  const bool is_plain = kind == LoopKind::serial || kind == LoopKind::unrolled;
  if (extent == Dim(1) && is_plain) return body(0);
  const Dim at = lowering_.positions().add_loop(extent);
  Stmt s{.kind = Stmt::Kind::loop, .loop = kind, .var = *loop_of(at), .extent = extent};
  s.body = of([&] { body(at); });
  add(std::move(s));
}

void BlockWriter::branch(Value condition, const Body& body, const Body& otherwise) {
  Stmt s{.kind = Stmt::Kind::branch, .condition = condition};
  s.body = of(body);
  s.otherwise = of(otherwise);
  add(std::move(s));
}

Dim BlockWriter::keep(const Dim& position) {
  const std::int64_t low = std::max<std::int64_t>(position.low(), 0);
  return declared(position, low, std::max(low, position.high()));
}

Dim BlockWriter::keep_signed(const Dim& position) {
  return declared(position, position.low(), position.high());
}

Dim BlockWriter::declared(const Dim& position, std::int64_t low, std::int64_t high) {
  if (position.is_number() || position.is_symbol()) return position;
  const RegId reg = lowering_.positions().new_register();
  add({.kind = Stmt::Kind::declare, .reg = reg, .value = lowering_.size(position)});
  return register_symbol(reg, low, high);
}

Value BlockWriter::at_most(const Dim& a, const Dim& b) const {
  return lowering_.apply(ops::le, {lowering_.size(a), lowering_.size(b)});
}

bool BlockWriter::fetches_first(const Dim& groups) {
  constexpr double few = 512;
  return typical(groups) <= few;
}

void BlockWriter::fetch(Value element) {
  for (const NodeId n : nodes_below(std::span(&element, 1))) {
    const Value load(&element.graph(), n);
    if (!load.is(ops::load) || load.operand_count() > 0) continue;
    add({.kind = Stmt::Kind::fetch,
         .param = static_cast<int>(load.attrs().integer("param")),
         .offset = load.attrs().dims("offset").at(0),
         .cache = 2});
  }
}

}  // namespace hone
