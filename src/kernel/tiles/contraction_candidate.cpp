#include <algorithm>
#include <array>

#include "kernel/nest/blocking.h"
#include "kernel/problem/anchored.h"
#include "kernel/problem/coded_operand.h"
#include "kernel/tiles/contraction.h"
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

// A contraction as found in the group.
struct ContractionProblem {
  Value a, b;  // m belongs to a, n to b
  OperandAxes a_axes, b_axes;
  // Result axes: batch, then those of m, then those of n; with `swapped` the last two are
  // exchanged.
  bool swapped = false;
};

ContractionProblem exchanged(ContractionProblem p) {
  std::swap(p.a, p.b);
  std::swap(p.a_axes, p.b_axes);
  p.swapped = !p.swapped;
  return p;
}

ContractionProblem of_dot(Value v) {
  Value a = v.operand(0), b = v.operand(1);
  DotAxes x = dot_axes(v.attrs(), a.rank(), b.rank());
  ContractionProblem p{
      a, b, {x.batch_a, x.free_a, x.contract_a}, {x.batch_b, x.free_b, x.contract_b}};
  // Lanes run along n; a single column would waste them.
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
ContractionProblem of_pixelwise_conv(Value v) {
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

Dims position_in_result(const ContractionProblem& p, const Dim& batch, const Dim& m, const Dim& n,
                        const Positions& positions) {
  Dims out = positions.split(batch, sizes_at(p.a.shape(), p.a_axes.batch));
  Dims rows = positions.split(m, sizes_at(p.a.shape(), p.a_axes.free));
  Dims columns = positions.split(n, sizes_at(p.b.shape(), p.b_axes.free));
  if (p.swapped) std::swap(rows, columns);
  out.insert(out.end(), rows.begin(), rows.end());
  out.insert(out.end(), columns.begin(), columns.end());
  return out;
}

// An operand as [b, k, n], padded and packed.
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

Contraction shape_of(const ContractionProblem& p, DType accumulate) {
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

// True for a load that is contiguous along n and has a constant stride along k.
bool lies_in_order(const Splice& b) {
  const Value& v = b.value;
  return v.is(ops::load) && v.operand_count() == 0 && stride_along(v, b.vars[2]) == 1 &&
         stride_of(v.attrs().dims("offset").at(0), b.vars[1]);
}

// How the right operand is read.
struct Reading {
  bool packs = false;
  std::optional<CodedOperand> coded = {};  // packed: the codes instead of the operand
};

// The factor of each column, at a position over the variables of B. Nullopt if it changes with k.
std::optional<Value> factor_at(AnchoredGroup& group, const CodedOperand& coded, const Dims& at,
                               const Dim& k) {
  const auto position = coded.position(at, group.lowering().positions());
  if (!position) return std::nullopt;
  Value factor = group.lowering().element(coded.factor, *position);
  if (dependences(factor).loops.contains(*loop_of(k))) return std::nullopt;
  return factor;
}

// The element of B over (b, k, n), computed from one of the codes. Nullopt if its other inputs are
// not contiguous along n.
std::optional<Splice> made_of_codes(AnchoredGroup& group, const ContractionProblem& p,
                                    const CodedOperand& coded, const Dims& at,
                                    std::span<const Dim> vars, DType accumulate) {
  Lowering& lowering = group.lowering();
  const auto position = coded.position(at, lowering.positions());
  if (!position) return std::nullopt;
  const Value code = lowering.reg(lowering.positions().new_register(), coded.codes.dtype());
  lowering.bind(coded.codes, *position, code);
  std::optional<Splice> out = group.element(p.b, at, vars, accumulate);
  if (!out) return std::nullopt;
  out->element = code;
  for (NodeId n : nodes_below(std::span(&out->value, 1))) {
    const Value v(&out->value.graph(), n);
    if (!v.is(ops::load)) continue;
    const auto stride = stride_along(v, vars[2]);
    if (stride != 0 && stride != 1) return std::nullopt;
  }
  return out;
}

// Fills in the expressions around it; B is read in place unless it is packed. Returns nullopt if
// the group does not allow that.
std::optional<Contraction> spliced_into(AnchoredGroup& group, const ContractionProblem& p,
                                        Contraction c, const Reading& reading) {
  const std::optional<CodedOperand>& coded = reading.coded;
  const bool has_factor = coded && coded->factor, makes_b = coded && !has_factor;
  Values read = {p.a};
  if (!reading.packs) read.push_back(p.b);
  if (has_factor) read.push_back(coded->factor);
  if (makes_b)
    group.set_operands(read, 1, p.b, coded->codes);
  else
    group.set_operands(read, reading.packs ? 1 : 0);
  Positions& positions = group.lowering().positions();
  const Dim b = positions.add_loop(c.batch), m = positions.add_loop(c.m),
            n = positions.add_loop(c.n), k = positions.add_loop(c.k);
  // The only position of an axis of size 1 is 0, also where it comes from a reshape.
  auto at = [&](const Dim& var) { return positions.extent(var) == Dim(1) ? Dim(0) : var; };
  auto a = group.element(p.a, position_in(p.a, p.a_axes, at(b), at(m), at(k), positions),
                         std::array{b, m, k}, c.accumulate);
  const Dims in_b = position_in(p.b, p.b_axes, at(b), at(n), at(k), positions);
  std::optional<Value> factor = Value();
  if (has_factor) factor = factor_at(group, *coded, in_b, k);
  if (!factor) return std::nullopt;
  if (makes_b) {
    auto made = made_of_codes(group, p, *coded, in_b, std::array{b, k, n}, c.accumulate);
    if (!made) return std::nullopt;
    c.b = std::move(*made);
  }
  if (coded) c.packed_dtype = packed_dtype(coded->codes, c.accumulate);
  auto epilogue = group.epilogue(position_in_result(p, at(b), at(m), at(n), positions),
                                 std::array{b, m, n}, *factor);
  if (!a || !epilogue) return std::nullopt;
  c.a = std::move(*a);
  c.epilogue = std::move(*epilogue);
  if (reading.packs) return c;
  auto right = group.element(p.b, in_b, std::array{b, k, n}, c.accumulate);
  if (!right || !lies_in_order(*right)) return std::nullopt;
  c.b = std::move(*right);
  return c;
}

Candidate candidate_of(AnchoredGroup& group, const ContractionProblem& p, Contraction c,
                       const ContractionTuning& t, const Reading& reading,
                       const TargetInfo& target) {
  Candidate out;
  out.name = "generated";
  if (reading.packs) {
    const Type type = packed_type(c, t);
    const bool is_weight = group.is_weight(p.b);
    c.packed_b = group.set_temporary(0, type);
    out.temporaries.push_back({type, is_weight});
    auto make = [&](Value v) {
      return packed(reading.coded ? reading.coded->in_order(v) : v, p.b_axes, c, t);
    };
    const Value of = reading.coded ? reading.coded->codes : p.b;
    out.steps.push_back(group.packing_step(of, make, 0, is_weight));
  }
  Kernel kernel = group.kernel();
  write_contraction(kernel, group.lowering(), c, t, target);
  out.steps.push_back({std::move(kernel), group.operands(), {}, false});
  return out;
}

struct FoundContraction {
  AnchoredGroup group;
  ContractionProblem problem;
  Contraction shape;
  bool is_weight = false;  // B

  // Its expressions if B is read in this way.
  std::optional<Contraction> contraction(AnchoredGroup& to, const Reading& reading) const {
    return spliced_into(to, problem, shape, reading);
  }

  // The ways to read B, in the order to try.
  std::vector<Reading> readings() const {
    if (!is_weight) return {{false}, {true}};
    std::vector<Reading> out;
    for (CodedOperand& coded : coded_operands(problem.b, shape.accumulate))
      out.push_back({true, std::move(coded)});
    out.push_back({true});
    return out;
  }
};

std::optional<FoundContraction> find_contraction(const GroupSpec& spec) {
  std::optional<AnchoredGroup> group = AnchoredGroup::find(spec);
  if (!group) return std::nullopt;
  Value anchor = group->anchor();
  if (anchor.is(ops::conv) && !is_pixelwise(anchor)) return std::nullopt;
  std::optional<DType> accumulate = accumulator(anchor.dtype());
  if (!accumulate) return std::nullopt;
  const ContractionProblem p = anchor.is(ops::conv) ? of_pixelwise_conv(anchor) : of_dot(anchor);
  const Contraction c = shape_of(p, *accumulate);
  const bool is_weight = group->is_weight(p.b);
  return FoundContraction{std::move(*group), p, c, is_weight};
}

}  // namespace

std::optional<Candidate> contraction_candidate(const GroupSpec& spec, const TargetInfo& target,
                                               const Tuning& tuning) {
  const std::optional<FoundContraction> found = find_contraction(spec);
  if (!found) return std::nullopt;
  for (const Reading& reading : found->readings()) {
    AnchoredGroup group = found->group;
    const std::optional<Contraction> c = found->contraction(group, reading);
    if (!c) continue;
    const ContractionTuning t = tuned(*c, target, tuning);
    if ((!reading.packs && t.pack_b) || (reading.coded && t.widen_b)) continue;
    return candidate_of(group, found->problem, *c, t, reading, target);
  }
  return std::nullopt;
}

std::vector<Tuning> contraction_space(const GroupSpec& spec, const TargetInfo& target) {
  const std::optional<FoundContraction> found = find_contraction(spec);
  if (!found) return {};
  for (const Reading& reading : found->readings()) {
    AnchoredGroup group = found->group;
    if (const std::optional<Contraction> c = found->contraction(group, reading))
      return space_of(*c, target, !reading.packs);
  }
  return {};
}

}  // namespace hone
