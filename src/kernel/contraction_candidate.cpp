#include <algorithm>
#include <array>

#include "kernel/anchored.h"
#include "kernel/blocking.h"
#include "kernel/contraction.h"
#include "kernel/walk.h"
#include "ops/common.h"
#include "ops/contraction.h"
#include "ops/ops.h"

namespace hone {

namespace {

// An operand seen as [batch, free, k]: its axes by role, with their sizes.
struct OperandAxes {
  Axes batch, free, contract;
};

Dims sizes_at(const Shape& s, const Axes& axes) {
  Dims out;
  for (int a : axes) out.push_back(s[a]);
  return out;
}

// A contraction as the skeleton knows it.
struct Problem {
  Value a, b;  // m belongs to a, n to b
  OperandAxes a_axes, b_axes;
  // Result axes: batch, then those of m, then those of n; the last two exchanged when swapped.
  bool swapped = false;
};

Problem exchanged(Problem p) {
  std::swap(p.a, p.b);
  std::swap(p.a_axes, p.b_axes);
  p.swapped = !p.swapped;
  return p;
}

Problem of_dot(Value v) {
  Value a = v.operand(0), b = v.operand(1);
  DotAxes x = dot_axes(v.attrs(), a.rank(), b.rank());
  Problem p{a, b, {x.batch_a, x.free_a, x.contract_a}, {x.batch_b, x.free_b, x.contract_b}};
  // Lanes run along n, so that one column would waste them.
  bool is_column = product(sizes_at(b.shape(), x.free_b)) == Dim(1);
  return is_column ? exchanged(p) : p;
}

bool is_pixelwise(Value v) {
  if (!v.is(ops::conv) || v.attrs().integer_or("channels_last", 0) == 0) return false;
  if (v.attrs().integer("groups") != 1) return false;
  ConvAxes axes = conv_axes(v.attrs(), v.rank());
  for (std::size_t i = 0; i < axes.space.size(); ++i) {
    bool plain = v.operand(1).shape()[axes.weight_space[i]] == Dim(1) &&
                 v.attrs().dims("strides")[i] == Dim(1) &&
                 v.attrs().dims("pads_low")[i] == Dim(0) &&
                 v.attrs().dims("pads_high")[i] == Dim(0);
    if (!plain) return false;
  }
  return true;
}

// Pixels are the rows.
Problem of_pixelwise_conv(Value v) {
  ConvAxes axes = conv_axes(v.attrs(), v.rank());
  Axes pixels = {axes.batch};
  pixels.insert(pixels.end(), axes.space.begin(), axes.space.end());
  return {v.operand(0), v.operand(1), {{}, pixels, {axes.channel}}, {{}, {axes.out}, {axes.in}}};
}

// The position in an operand of element (batch, free, k).
Dims position_in(const Value& v, const OperandAxes& axes, const Dim& batch, const Dim& free,
                 const Dim& k, const Positions& positions) {
  Dims out(static_cast<std::size_t>(v.rank()), 0);
  auto place = [&](const Axes& list, const Dim& linear) {
    Dims at = positions.split(linear, sizes_at(v.shape(), list));
    for (std::size_t i = 0; i < list.size(); ++i) out[static_cast<std::size_t>(list[i])] = at[i];
  };
  place(axes.batch, batch);
  place(axes.free, free);
  place(axes.contract, k);
  return out;
}

Dims position_in_result(const Problem& p, const Dim& batch, const Dim& m, const Dim& n,
                        const Positions& positions) {
  Dims out = positions.split(batch, sizes_at(p.a.shape(), p.a_axes.batch));
  Dims rows = positions.split(m, sizes_at(p.a.shape(), p.a_axes.free));
  Dims columns = positions.split(n, sizes_at(p.b.shape(), p.b_axes.free));
  if (p.swapped) std::swap(rows, columns);
  out.insert(out.end(), rows.begin(), rows.end());
  out.insert(out.end(), columns.begin(), columns.end());
  return out;
}

// [b, k, n] of an operand, padded and packed.
Value packed(Value v, const OperandAxes& axes, const Contraction& c) {
  Axes order = axes.batch;
  order.insert(order.end(), axes.contract.begin(), axes.contract.end());
  order.insert(order.end(), axes.free.begin(), axes.free.end());
  // Axes of size 1 that have no role.
  for (int a = 0; a < v.rank(); ++a)
    if (std::find(order.begin(), order.end(), a) == order.end()) order.insert(order.begin(), a);
  Dims dims = packed_type(c).shape.dims;
  const Dim panels = dims[dims.size() - 3], batch = c.packed_batch ? c.batch : Dim(1);
  Value x = cast_to(reshape_to(transpose_by(v, order), {batch, c.k, c.n}), c.accumulate);
  Value zero = scalar(v.graph(), 0, c.accumulate);
  x = pad_with(x, zero, {0, 0, 0}, {0, 0, panels * Dim(c.block) - c.n});
  x = reshape_to(x, {batch, c.k, panels, c.block});
  x = transpose_by(x, Axes{0, 2, 1, 3});
  return c.packed_batch ? x : reshape_to(x, dims);
}

OperandAccess access_of(const Hole& a, const Dim& row, const Dim& k, DType dtype) {
  if (auto load = plain_load(a, dtype))
    return {true, stride_along(*load, row), stride_along(*load, k)};
  // Lanes of the copy follow the first load that moves with both.
  OperandAccess access;
  for (NodeId n : nodes_below(std::span(&a.value, 1))) {
    Value v(&a.value.graph(), n);
    if (!v.is(ops::load)) continue;
    auto rows = stride_along(v, row), steps = stride_along(v, k);
    if (rows == 0 || steps == 0) continue;
    return {false, rows, steps};
  }
  return access;
}

// B is read as it lies when few rows use it, or when it is small: packing would cost more.
bool pays_to_read_in_place(const Contraction& c) {
  constexpr std::int64_t few_rows = 32, small_bytes = 64 << 10;
  const std::int64_t bytes = tiling_size(c.k) * tiling_size(c.n) * byte_size(c.accumulate);
  return bytes <= small_bytes || (c.m.is_number() && c.m.number() <= few_rows);
}

Contraction shape_of(const Problem& p, DType accumulate) {
  Contraction c;
  c.accumulate = accumulate;
  c.batch = product(sizes_at(p.a.shape(), p.a_axes.batch));
  c.m = product(sizes_at(p.a.shape(), p.a_axes.free));
  c.n = product(sizes_at(p.b.shape(), p.b_axes.free));
  c.k = product(sizes_at(p.a.shape(), p.a_axes.contract));
  c.packed_batch = !(c.batch == Dim(1));
  return c;
}

// With B packed, or read in place; nothing when the group does not allow it.
std::optional<Candidate> build(AnchoredGroup group, const Problem& p, Contraction c, bool pack,
                               const TargetInfo& target) {
  c.graph = group.graph();
  Values read = {p.a};
  if (!pack) read.push_back(p.b);
  group.set_operands(read, pack ? 1 : 0);
  Positions& positions = group.lowering().positions();
  const Dim b = positions.add_loop(c.batch), m = positions.add_loop(c.m),
            n = positions.add_loop(c.n), k = positions.add_loop(c.k);
  // The only position of an axis of size 1 is 0, also where it comes from a reshape.
  auto at = [&](const Dim& var) { return positions.extent(var) == Dim(1) ? Dim(0) : var; };
  auto a_hole = group.load_hole(p.a, position_in(p.a, p.a_axes, at(b), at(m), at(k), positions),
                                std::array{b, m, k}, c.accumulate);
  auto epilogue =
      group.epilogue(position_in_result(p, at(b), at(m), at(n), positions), std::array{b, m, n});
  if (!a_hole || !epilogue) return std::nullopt;
  c.a = std::move(*a_hole);
  c.epilogue = std::move(*epilogue);
  if (!pack) {
    auto b_hole = group.load_hole(p.b, position_in(p.b, p.b_axes, at(b), at(n), at(k), positions),
                                  std::array{b, k, n}, c.accumulate);
    bool in_order = b_hole && b_hole->value.is(ops::load) && b_hole->value.operand_count() == 0 &&
                    stride_along(b_hole->value, n) == 1;
    if (!in_order) return std::nullopt;
    c.b = std::move(*b_hole);
  }
  choose_blocking(c, access_of(c.a, m, k, c.accumulate), target);
  Candidate out;
  out.name = "generated";
  if (pack) {
    const Type type = packed_type(c);
    const bool is_weight = group.is_weight(p.b);
    c.packed_b = group.set_temporary(0, type);
    out.temporaries.push_back({type, is_weight});
    auto make = [&](Value v) { return packed(v, p.b_axes, c); };
    out.steps.push_back(group.packing_step(p.b, make, 0, is_weight));
  }
  Kernel kernel = group.kernel();
  kernel.chunks = chunks_of(c);
  kernel.scratch_bytes = scratch_bytes(c);
  kernel.body = std::move(c);
  out.steps.push_back({std::move(kernel), group.operands(), {}, false});
  return out;
}

}  // namespace

std::optional<Candidate> contraction_candidate(const GroupSpec& spec, const TargetInfo& target) {
  std::optional<AnchoredGroup> group = AnchoredGroup::find(spec);
  if (!group) return std::nullopt;
  Value anchor = group->anchor();
  if (anchor.is(ops::conv) && !is_pixelwise(anchor)) return std::nullopt;
  std::optional<DType> accumulate = accumulator(anchor.dtype());
  if (!accumulate) return std::nullopt;
  const Problem p = anchor.is(ops::conv) ? of_pixelwise_conv(anchor) : of_dot(anchor);
  const Contraction c = shape_of(p, *accumulate);
  if (!group->is_weight(p.b) && pays_to_read_in_place(c))
    if (auto candidate = build(*group, p, c, false, target)) return candidate;
  return build(*group, p, c, true, target);
}

}  // namespace hone
