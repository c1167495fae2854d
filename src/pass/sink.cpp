#include "pass/sink.h"

#include <algorithm>
#include <deque>

#include "ops/common.h"
#include "pass/rewrite.h"

namespace hone {

namespace {

bool is_mover(Value v) { return v.is(ops::reshape) || v.is(ops::transpose); }

// Elementwise on the result of a contraction or reduction.
bool follows_anchor(Value v) {
  constexpr int deepest = 16;
  for (int depth = 0; depth < deepest; ++depth) {
    OpKind kind = v.op().kind;
    if (kind == OpKind::contraction || kind == OpKind::reduction) return true;
    if (kind != OpKind::elementwise) return false;
    Value next;
    for (Value operand : v.operands())
      if (!operand.is(ops::broadcast) && operand.shape() == v.shape()) next = operand;
    if (!next) return false;
    v = next;
  }
  return false;
}

Axes inverse_of(const Axes& p) {
  Axes q(p.size());
  for (std::size_t i = 0; i < p.size(); ++i)
    q[static_cast<std::size_t>(p[i])] = static_cast<int>(i);
  return q;
}

// Sizes of v with its leading axes of size 1 as in a value of this rank.
Dims padded_sizes(Value v, int rank) {
  Dims dims(static_cast<std::size_t>(rank - v.rank()), Dim(1));
  dims.insert(dims.end(), v.shape().dims.begin(), v.shape().dims.end());
  return dims;
}

// b, whose broadcast has the shape of `transpose`, as it must be before the transposition.
Value before_transpose(Value b, Value transpose) {
  Axes perm = inverse_of(axes_of(transpose.attrs(), "perm"));
  return transpose_by(reshape_to(b, padded_sizes(b, transpose.rank())), perm);
}

// Axes that have a size other than 1, in order.
Axes real_axes(const Shape& s) {
  Axes out;
  for (int i = 0; i < s.rank(); ++i)
    if (s[i] != Dim(1)) out.push_back(i);
  return out;
}

bool only_moves_ones(const Shape& a, const Shape& b) {
  Axes p = real_axes(a), q = real_axes(b);
  if (p.size() != q.size()) return false;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (a[p[i]] != b[q[i]]) return false;
  return true;
}

// The same for a reshape; nothing when its axes are cut differently where b has more than one
// element.
std::optional<Value> before_reshape(Value b, Value reshape) {
  const Shape &to = reshape.shape(), &from = reshape.operand(0).shape();
  Dims sizes = padded_sizes(b, to.rank());
  if (only_moves_ones(to, from)) {
    Axes p = real_axes(to), q = real_axes(from);
    Dims out(from.dims.size(), Dim(1));
    for (std::size_t i = 0; i < p.size(); ++i)
      out[static_cast<std::size_t>(q[i])] = sizes[static_cast<std::size_t>(p[i])];
    return reshape_to(b, out);
  }
  // Trailing axes that both have; b must have size 1 before them.
  std::size_t same = 0;
  while (same < to.dims.size() && same < from.dims.size() &&
         to.dims[to.dims.size() - 1 - same] == from.dims[from.dims.size() - 1 - same])
    ++same;
  std::size_t before = sizes.size() - same;
  for (std::size_t i = 0; i < before; ++i)
    if (sizes[i] != Dim(1)) return std::nullopt;
  return reshape_to(b, Dims(sizes.begin() + static_cast<std::ptrdiff_t>(before), sizes.end()));
}

// Operand `v` of an elementwise operation as it must be before the mover; nothing when it cannot
// be.
std::optional<Value> moved_operand(Value v, Value mover) {
  Value from = mover.operand(0);
  if (v == mover) return from;
  if (v.op().name == mover.op().name && v.operand(0).shape() == from.shape() &&
      v.attrs() == mover.attrs())
    return v.operand(0);
  if (v.is(ops::broadcast)) {
    Value b = v.operand(0);
    if (mover.is(ops::transpose)) return broadcast_to(before_transpose(b, mover), from.shape());
    std::optional<Value> small = before_reshape(b, mover);
    if (!small) return std::nullopt;
    return broadcast_to(*small, from.shape());
  }
  // What another anchor gives goes to the form with fewer axes only, or both would move for ever.
  if (!mover.is(ops::reshape) || (follows_anchor(v) && from.rank() <= v.rank()))
    return std::nullopt;
  return reshape_to(v, from.shape().dims);
}

Value find_mover(Value root) {
  for (Value v : root.operands())
    if (is_mover(v) && v.shape() == root.shape() && follows_anchor(v.operand(0))) return v;
  return {};
}

std::optional<Values> moved_operands(Value root) {
  Value mover = find_mover(root);
  if (!mover) return std::nullopt;
  Values out;
  for (Value v : root.operands()) {
    if (v.shape() != root.shape()) return std::nullopt;
    std::optional<Value> m = moved_operand(v, mover);
    if (!m) return std::nullopt;
    out.push_back(*m);
  }
  return out;
}

Value moved_after(Value mover, Value made) {
  if (mover.is(ops::transpose)) return transpose_by(made, axes_of(mover.attrs(), "perm"));
  return reshape_to(made, mover.shape().dims);
}

bool can_move(const Match& m) { return moved_operands(m.root).has_value(); }

Value moved(const Match& m) {
  Value mover = find_mover(m.root);
  Values operands = *moved_operands(m.root);
  return moved_after(mover, m.root.graph().intern(m.root.op(), operands, m.root.attrs()));
}

// ---- reductions of what was moved

// Axis i of the result of the reduction is this axis of the operand.
Axes kept_axes(int rank, const Axes& reduced) {
  Axes out;
  for (int i = 0; i < rank; ++i)
    if (std::find(reduced.begin(), reduced.end(), i) == reduced.end()) out.push_back(i);
  return out;
}

Value reduced_before_transpose(const Match& m) {
  Value x = m["x"];
  Axes perm = axes_of(m.root.operand(0).attrs(), "perm"), axes = axes_of(m.root.attrs(), "axes");
  Axes inner;
  for (int a : axes) inner.push_back(perm[static_cast<std::size_t>(a)]);
  std::sort(inner.begin(), inner.end());
  Value made = reduce_axes(m.root.op(), x, inner);
  Axes have = kept_axes(x.rank(), inner), order;
  for (int a : kept_axes(x.rank(), axes)) {
    int from = perm[static_cast<std::size_t>(a)];
    order.push_back(static_cast<int>(std::find(have.begin(), have.end(), from) - have.begin()));
  }
  return transpose_by(made, order);
}

bool reshape_moves_ones(const Match& m) {
  return only_moves_ones(m["x"].shape(), m.root.operand(0).shape());
}

Value reduced_before_reshape(const Match& m) {
  Value x = m["x"], y = m.root.operand(0);
  Axes p = real_axes(y.shape()), q = real_axes(x.shape()), inner;
  for (int a : axes_of(m.root.attrs(), "axes")) {
    auto it = std::find(p.begin(), p.end(), a);
    if (it != p.end()) inner.push_back(q[static_cast<std::size_t>(it - p.begin())]);
  }
  return reshape_to(reduce_axes(m.root.op(), x, inner), m.root.shape().dims);
}

// Only axes of size 1 are reduced: simplify makes that a reshape.
bool reduces_something(const Match& m) {
  for (int a : axes_of(m.root.attrs(), "axes"))
    if (m.root.operand(0).shape()[a] != Dim(1)) return reshape_moves_ones(m);
  return false;
}

std::vector<Rule> make_sink_rules() {
  static std::deque<std::string> names;
  std::vector<Rule> rules;
  const Pattern holes[] = {Pattern::any("a"), Pattern::any("b"), Pattern::any("c")};
  for (const Op* op : all_ops()) {
    if (op->kind != OpKind::elementwise || op == &ops::iota || op == &ops::random_bits) continue;
    names.push_back(cat("sink-past-", op->name));
    for (std::size_t n = 1; n <= 3; ++n)
      rules.push_back({names.back(), RuleClass::exact,
                       apply(*op, std::vector<Pattern>(holes, holes + n), {}), moved, can_move});
  }
  const Pattern x = Pattern::any("x");
  for (const Op* op : {&ops::reduce_sum, &ops::reduce_max, &ops::reduce_min, &ops::reduce_prod,
                       &ops::reduce_and, &ops::reduce_or}) {
    names.push_back(cat("sink-past-", op->name));
    rules.push_back(
        {names.back(), RuleClass::rounding, (*op)(ops::transpose(x)), reduced_before_transpose});
    rules.push_back({names.back(), RuleClass::rounding, (*op)(ops::reshape(x)),
                     reduced_before_reshape, reduces_something});
  }
  return rules;
}

}  // namespace

Function sink(const Function& f) {
  static const std::vector<Rule> rules = make_sink_rules();
  static const RuleSet set(rules);
  return rewrite(f, set);
}

}  // namespace hone
