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

// A contraction as it stands in the group.
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
Value packed(Value v, const OperandAxes& axes, const Contraction& c, const ContractionTuning& t) {
  Axes order = axes.batch;
  order.insert(order.end(), axes.contract.begin(), axes.contract.end());
  order.insert(order.end(), axes.free.begin(), axes.free.end());
  // Axes of size 1 that have no role.
  for (int a = 0; a < v.rank(); ++a)
    if (std::find(order.begin(), order.end(), a) == order.end()) order.insert(order.begin(), a);
  Dims dims = packed_type(c, t).shape.dims;
  const Dim panels = dims[dims.size() - 3], batch = c.packed_batch ? c.batch : Dim(1);
  const DType dtype = packed_type(c, t).dtype;
  Value x = cast_to(reshape_to(transpose_by(v, order), {batch, c.k, c.n}), dtype);
  Value zero = scalar(v.graph(), 0, dtype);
  x = pad_with(x, zero, {0, 0, 0}, {0, 0, panels * Dim(t.columns) - c.n});
  x = reshape_to(x, {batch, c.k, panels, t.columns});
  x = transpose_by(x, Axes{0, 2, 1, 3});
  return c.packed_batch ? x : reshape_to(x, dims);
}

Contraction shape_of(const Problem& p, DType accumulate) {
  Contraction c;
  c.accumulate = accumulate;
  c.packed_dtype = packed_dtype(p.b, accumulate);
  c.batch = product(sizes_at(p.a.shape(), p.a_axes.batch));
  c.m = product(sizes_at(p.a.shape(), p.a_axes.free));
  c.n = product(sizes_at(p.b.shape(), p.b_axes.free));
  c.k = product(sizes_at(p.a.shape(), p.a_axes.contract));
  c.packed_batch = !(c.batch == Dim(1));
  return c;
}

// A load whose n lie side by side, and whose k are a stride apart.
bool lies_in_order(const Splice& b) {
  const Value& v = b.value;
  return v.is(ops::load) && v.operand_count() == 0 && stride_along(v, b.vars[2]) == 1 &&
         stride_of(v.attrs().dims("offset").at(0), b.vars[1]);
}

// Fills in the expressions around it; B is read as it lies unless it is packed. Nothing when the
// group does not allow it.
std::optional<Contraction> spliced_into(AnchoredGroup& group, const Problem& p, Contraction c,
                                        bool pack) {
  Values read = {p.a};
  if (!pack) read.push_back(p.b);
  group.set_operands(read, pack ? 1 : 0);
  Positions& positions = group.lowering().positions();
  const Dim b = positions.add_loop(c.batch), m = positions.add_loop(c.m),
            n = positions.add_loop(c.n), k = positions.add_loop(c.k);
  // The only position of an axis of size 1 is 0, also where it comes from a reshape.
  auto at = [&](const Dim& var) { return positions.extent(var) == Dim(1) ? Dim(0) : var; };
  auto a = group.element(p.a, position_in(p.a, p.a_axes, at(b), at(m), at(k), positions),
                         std::array{b, m, k}, c.accumulate);
  auto epilogue =
      group.epilogue(position_in_result(p, at(b), at(m), at(n), positions), std::array{b, m, n});
  if (!a || !epilogue) return std::nullopt;
  c.a = std::move(*a);
  c.epilogue = std::move(*epilogue);
  if (pack) return c;
  auto right = group.element(p.b, position_in(p.b, p.b_axes, at(b), at(n), at(k), positions),
                             std::array{b, k, n}, c.accumulate);
  if (!right || !lies_in_order(*right)) return std::nullopt;
  c.b = std::move(*right);
  return c;
}

Candidate candidate_of(AnchoredGroup& group, const Problem& p, Contraction c,
                       const ContractionTuning& t, bool pack, const TargetInfo& target) {
  Candidate out;
  out.name = "generated";
  if (pack) {
    const Type type = packed_type(c, t);
    const bool is_weight = group.is_weight(p.b);
    c.packed_b = group.set_temporary(0, type);
    out.temporaries.push_back({type, is_weight});
    auto make = [&](Value v) { return packed(v, p.b_axes, c, t); };
    out.steps.push_back(group.packing_step(p.b, make, 0, is_weight));
  }
  Kernel kernel = group.kernel();
  write_contraction(kernel, group.lowering(), c, t, target);
  out.steps.push_back({std::move(kernel), group.operands(), {}, false});
  return out;
}

struct Found {
  AnchoredGroup group;
  Problem problem;
  Contraction shape;
  bool may_read_b = false;  // as it lies

  // Its expressions with B packed or not.
  std::optional<Contraction> contraction(AnchoredGroup& to, bool pack) const {
    return spliced_into(to, problem, shape, pack);
  }
};

std::optional<Found> find(const GroupSpec& spec) {
  std::optional<AnchoredGroup> group = AnchoredGroup::find(spec);
  if (!group) return std::nullopt;
  Value anchor = group->anchor();
  if (anchor.is(ops::conv) && !is_pixelwise(anchor)) return std::nullopt;
  std::optional<DType> accumulate = accumulator(anchor.dtype());
  if (!accumulate) return std::nullopt;
  const Problem p = anchor.is(ops::conv) ? of_pixelwise_conv(anchor) : of_dot(anchor);
  const Contraction c = shape_of(p, *accumulate);
  const bool is_weight = group->is_weight(p.b);
  return Found{std::move(*group), p, c, !is_weight};
}

}  // namespace

std::optional<Candidate> contraction_candidate(const GroupSpec& spec, const TargetInfo& target,
                                               const Tuning& tuning) {
  const std::optional<Found> found = find(spec);
  if (!found) return std::nullopt;
  for (bool pack : {false, true}) {
    if (!pack && !found->may_read_b) continue;
    AnchoredGroup group = found->group;
    const std::optional<Contraction> c = found->contraction(group, pack);
    if (!c) continue;
    const ContractionTuning t = tuned(*c, target, tuning);
    if (!pack && t.pack_b) continue;
    return candidate_of(group, found->problem, *c, t, pack, target);
  }
  return std::nullopt;
}

std::vector<Tuning> contraction_space(const GroupSpec& spec, const TargetInfo& target) {
  const std::optional<Found> found = find(spec);
  if (!found) return {};
  AnchoredGroup group = found->group, other = found->group;
  const std::optional<Contraction> in_place =
      found->may_read_b ? found->contraction(group, false) : std::nullopt;
  const std::optional<Contraction> c = in_place ? in_place : found->contraction(other, true);
  return c ? space_of(*c, target, in_place.has_value()) : std::vector<Tuning>();
}

}  // namespace hone
