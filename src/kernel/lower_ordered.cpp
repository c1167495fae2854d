#include "kernel/lower_ordered.h"

#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

// Opens a loop over every axis but one; gives the position with 0 there.
Dims open_other_axes(Lowering& l, const Shape& shape, int axis) {
  Dims position(static_cast<std::size_t>(shape.rank()), 0);
  for (int i = 0; i < shape.rank(); ++i)
    if (i != axis && shape[i] != Dim(1))
      position[static_cast<std::size_t>(i)] = l.open_loop(shape[i]);
  return position;
}

void close_other_axes(Lowering& l, const Shape& shape, int axis) {
  for (int i = 0; i < shape.rank(); ++i)
    if (i != axis && shape[i] != Dim(1)) l.close_loop();
}

void lower_cumulative(Lowering& l, Value v, const Memory& to) {
  const int axis = static_cast<int>(v.attrs().integer("axis"));
  const Op& join = *joiner_of(v.attrs().get<std::string>("kind"));
  const Dim size = v.shape()[axis];
  const bool reverse = v.attrs().integer("reverse") != 0,
             exclusive = v.attrs().integer("exclusive") != 0;
  Dims position = open_other_axes(l, v.shape(), axis);
  RegId total = l.positions().new_register();
  l.add({.kind = Kind::declare,
         .reg = total,
         .value = constant(l.graph(), start_of(join, v.dtype()))});
  Dim k = l.open_loop(size);
  position[static_cast<std::size_t>(axis)] = reverse ? size - Dim(1) - k : k;
  Value x = l.element(v.operand(0), position), sum = l.reg(total, v.dtype());
  if (exclusive) l.store(sum, position, to, {});
  l.add({.kind = Kind::accumulate, .reg = total, .combine = &join, .value = x});
  if (!exclusive) l.store(sum, position, to, {});
  l.close_loop();
  close_other_axes(l, v.shape(), axis);
}

// A copy of x, then one update after another; parallel over the axes that the indices do not move.
void lower_scatter(Lowering& l, Value v, const Memory& to) {
  const int axis = static_cast<int>(v.attrs().integer("axis"));
  const Value indices = v.operand(1), updates = v.operand(2);
  const Dim size = v.shape()[axis];
  Dims position = open_other_axes(l, v.shape(), axis);
  const auto a = static_cast<std::size_t>(axis);
  position[a] = l.open_loop(size);
  l.store(v.operand(0), position, to);
  l.close_loop();

  Dims update(position.begin(), position.begin() + axis), k;
  for (const Dim& extent : indices.shape().dims) k.push_back(l.open_loop(extent));
  update.insert(update.end(), k.begin(), k.end());
  update.insert(update.end(), position.begin() + axis + 1, position.end());
  Value n = l.convert(l.element(indices, k), DType::i64);
  Value zero = l.integer(0, DType::i64), limit = l.size(size);
  if (is_signed(indices.dtype()))
    n = l.apply(ops::select, {l.apply(ops::lt, {n, zero}), l.apply(ops::add, {n, limit}), n});
  Value is_inside =
      l.apply(ops::bit_and, {l.apply(ops::le, {zero, n}), l.apply(ops::lt, {n, limit})});
  Dim place = l.positions().add_register(size);
  l.add({.kind = Kind::declare,
         .reg = *register_of(place),
         .value = l.apply(ops::select, {is_inside, n, zero})});
  position[a] = place;
  Value x = l.element(updates, update);
  if (const Op* join = joiner_of(v.attrs().get<std::string>("kind"))) {
    Dim offset = 0;
    for (std::size_t i = 0; i < position.size(); ++i) offset = offset + position[i] * to.strides[i];
    x = l.apply(*join, {l.load(to.param, v.dtype(), offset, is_inside), x});
  }
  l.store(x, position, to, is_inside);
  for (std::size_t i = 0; i < k.size(); ++i) l.close_loop();
  close_other_axes(l, v.shape(), axis);
}

}  // namespace

bool is_ordered_op(const Op& op) { return &op == &ops::cumulative || &op == &ops::scatter; }

void lower_ordered(Lowering& l, Kernel&, Value v, std::span<const OrderedResult> results) {
  if (v.is(ops::cumulative)) lower_cumulative(l, v, results[0].memory);
  if (v.is(ops::scatter)) lower_scatter(l, v, results[0].memory);
}

}  // namespace hone
