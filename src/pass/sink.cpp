#include "pass/sink.h"

#include <algorithm>

#include "ops/common.h"
#include "pass/rewrite.h"

namespace hone {

namespace {

bool is_mover(Value v) { return v.is(ops::reshape) || v.is(ops::transpose); }

// Whether v is elementwise on the result of a contraction or reduction, possibly moved.
bool follows_anchor(Value v) {
  constexpr int deepest = 16;
  for (int depth = 0; depth < deepest; ++depth) {
    OpKind kind = v.op().kind;
    if (kind == OpKind::contraction || kind == OpKind::reduction) return true;
    if (is_mover(v)) {
      v = v.operand(0);
      continue;
    }
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

// Sizes of v, padded to this rank with leading axes of size 1.
Dims padded_sizes(Value v, int rank) {
  Dims dims(static_cast<std::size_t>(rank - v.rank()), Dim(1));
  dims.insert(dims.end(), v.shape().dims.begin(), v.shape().dims.end());
  return dims;
}

// Axes of size other than 1, in order.
Axes real_axes(const Shape& s) {
  Axes out;
  for (int i = 0; i < s.rank(); ++i)
    if (s[i] != Dim(1)) out.push_back(i);
  return out;
}

// A transpose that moves only axes of size 1 is a reshape.
Value transposed(Value v, const Axes& perm) {
  Axes order;
  for (int a : perm)
    if (v.shape()[a] != Dim(1)) order.push_back(a);
  if (!std::is_sorted(order.begin(), order.end())) return transpose_by(v, perm);
  Dims dims;
  for (int a : perm) dims.push_back(v.shape()[a]);
  return reshape_to(v, dims);
}

// The form of b before the transposition; b broadcasts to the shape of `transpose`.
Value before_transpose(Value b, Value transpose) {
  Axes perm = inverse_of(axes_of(transpose.attrs(), "perm"));
  return transposed(reshape_to(b, padded_sizes(b, transpose.rank())), perm);
}

bool only_moves_ones(const Shape& a, const Shape& b) {
  Axes p = real_axes(a), q = real_axes(b);
  if (p.size() != q.size()) return false;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (a[p[i]] != b[q[i]]) return false;
  return true;
}

// The same for a reshape; nullopt if it splits axes along which b has more than one element.
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
  // Common trailing axes; b must have size 1 before them.
  std::size_t same = 0;
  while (same < to.dims.size() && same < from.dims.size() &&
         to.dims[to.dims.size() - 1 - same] == from.dims[from.dims.size() - 1 - same])
    ++same;
  std::size_t before = sizes.size() - same;
  for (std::size_t i = 0; i < before; ++i)
    if (sizes[i] != Dim(1)) return std::nullopt;
  return reshape_to(b, Dims(sizes.begin() + static_cast<std::ptrdiff_t>(before), sizes.end()));
}

// The form of operand `v` of an elementwise operation before the mover; nullopt if there is none.
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
  // Another anchor's result only moves to the form with fewer axes; otherwise both would move
  // forever.
  if (!mover.is(ops::reshape) || (follows_anchor(v) && from.rank() <= v.rank()))
    return std::nullopt;
  return reshape_to(v, from.shape().dims);
}

// A mover among the operands of an elementwise operation, and the form of all operands before it.
struct Movement {
  Value mover;
  Values operands;
};

std::optional<Movement> find_movement(const Values& operands, const Shape& shape) {
  Movement m;
  for (Value v : operands) {
    if (v.shape() != shape) return std::nullopt;
    if (!m.mover && is_mover(v) && follows_anchor(v.operand(0))) m.mover = v;
  }
  if (!m.mover) return std::nullopt;
  for (Value v : operands) {
    std::optional<Value> before = moved_operand(v, m.mover);
    if (!before) return std::nullopt;
    m.operands.push_back(*before);
  }
  return m;
}

Value moved_after(Value mover, Value made) {
  if (mover.is(ops::transpose)) return transposed(made, axes_of(mover.attrs(), "perm"));
  return reshape_to(made, mover.shape().dims);
}

// ---- reductions of moved values

// The remaining axes, in order.
Axes kept_axes(int rank, const Axes& reduced) {
  Axes out;
  for (int i = 0; i < rank; ++i)
    if (std::find(reduced.begin(), reduced.end(), i) == reduced.end()) out.push_back(i);
  return out;
}

Value reduced_before_transpose(const Op& op, Value moved, const Axes& axes) {
  Value x = moved.operand(0);
  Axes perm = axes_of(moved.attrs(), "perm"), inner, order;
  for (int a : axes) inner.push_back(perm[static_cast<std::size_t>(a)]);
  std::sort(inner.begin(), inner.end());
  Value made = reduce_axes(op, x, inner);
  Axes have = kept_axes(x.rank(), inner);
  for (int a : kept_axes(x.rank(), axes)) {
    int from = perm[static_cast<std::size_t>(a)];
    order.push_back(static_cast<int>(std::find(have.begin(), have.end(), from) - have.begin()));
  }
  return transposed(made, order);
}

// Axes of size 1 are reduced with the others; the final reshape restores those of the result.
Value reduced_before_reshape(const Op& op, Value moved, const Axes& axes, const Shape& result) {
  Value x = moved.operand(0);
  Axes p = real_axes(moved.shape()), q = real_axes(x.shape()), inner;
  for (int i = 0; i < x.rank(); ++i) {
    auto it = std::find(q.begin(), q.end(), i);
    int outer = it == q.end() ? -1 : p[static_cast<std::size_t>(it - q.begin())];
    if (outer < 0 || std::find(axes.begin(), axes.end(), outer) != axes.end()) inner.push_back(i);
  }
  return reshape_to(reduce_axes(op, x, inner), result.dims);
}

bool is_reduction_over_axes(const Op& op) {
  return op.kind == OpKind::reduction && op.is_core() && &op != &ops::argmax &&
         &op != &ops::argmin && &op != &ops::reduce_window;
}

// ---- the pass

// Nodes that should stay after the movement: their only user is a reduction or row operation there
// that can take them into its group, and their operands are also read there.
std::vector<bool> find_staying(const Function& f, const std::vector<NodeId>& order) {
  const Graph& graph = f.graph();
  std::vector<std::uint32_t> uses(graph.node_count(), 0);
  std::vector<NodeId> reader(graph.node_count(), 0);
  auto use = [&](Value v, NodeId by) {
    ++uses[v.node()];
    reader[v.node()] = by;
  };
  for (NodeId n : order)
    for (const Value& v : graph.operands(n)) use(v, n);
  for (const Function::Result& r : f.results()) uses[r.value.node()] += 2;
  std::vector<bool> out(graph.node_count(), false);
  for (NodeId n : order) {
    if (graph.op(n).kind != OpKind::elementwise || uses[n] != 1) continue;
    const Op& by = graph.op(reader[n]);
    bool is_row = is_reduction_over_axes(by) || by.is_row;
    std::size_t own = 0, all = 0;
    for (const Value& v : graph.operands(n))
      if (is_mover(v)) {
        all = uses[v.node()];
        ++own;
      }
    out[n] = is_row && own > 0 && all > own;
  }
  return out;
}

class Sinker {
 public:
  Sinker(const Function& f) : from_(f), order_(live_nodes(f)), staying_(find_staying(f, order_)) {}

  Function run() {
    if (!moves_anything()) return from_;
    bool changed = false;
    Function out = transform(from_, [&](NodeId n, Copier& copier, Function& to) -> Values {
      const Graph& graph = from_.graph();
      const Op& op = graph.op(n);
      if (graph.result_count(n) != 1 || staying_[n] || graph.operands(n).empty()) return {};
      Values operands;
      for (const Value& v : graph.operands(n)) operands.push_back(copier(v));
      Value made = moved(to.graph(), op, operands, graph.attrs(n), graph.type(n).shape);
      changed = changed || made;
      return made ? Values{made} : Values{};
    });
    return changed ? out : from_;
  }

 private:
  // Whether an anchor is followed by a movement and an operation that could come before it; if not,
  // nothing is allocated.
  bool moves_anything() const {
    for (NodeId n : order_)
      for (const Value& v : from_.graph().operands(n))
        if (!staying_[n] && is_mover(v) && moves_past(from_.graph().op(n)) &&
            follows_anchor(v.operand(0)))
          return true;
    return false;
  }

  static bool moves_past(const Op& op) {
    return op.kind == OpKind::elementwise || is_reduction_over_axes(op);
  }

  // Returns an empty Value if nothing moves.
  static Value moved(Graph& to, const Op& op, const Values& operands, const Attrs& attrs,
                     const Shape& shape) {
    if (is_reduction_over_axes(op)) return moved_reduction(op, operands[0], attrs, shape);
    if (op.kind != OpKind::elementwise) return {};
    std::optional<Movement> m = find_movement(operands, shape);
    if (!m) return {};
    Value inner = moved(to, op, m->operands, attrs, m->mover.operand(0).shape());
    if (!inner) inner = to.intern(op, m->operands, attrs);
    return moved_after(m->mover, inner);
  }

  static Value moved_reduction(const Op& op, Value x, const Attrs& attrs, const Shape& shape) {
    Axes axes = axes_of(attrs, "axes");
    if (!is_mover(x) || !follows_anchor(x.operand(0))) return {};
    Value made;
    if (x.is(ops::transpose)) made = reduced_before_transpose(op, x, axes);
    if (x.is(ops::reshape) && only_moves_ones(x.operand(0).shape(), x.shape()))
      made = reduced_before_reshape(op, x, axes, shape);
    if (!made) return {};
    // The reduced value may itself be moved.
    Value core = is_mover(made) ? made.operand(0) : made;
    if (!core.is(op) || !is_mover(core.operand(0))) return made;
    Value again = moved_reduction(op, core.operand(0), core.attrs(), core.shape());
    if (!again) return made;
    return is_mover(made) ? moved_after(made, again) : again;
  }

  const Function& from_;
  std::vector<NodeId> order_;
  std::vector<bool> staying_;
};

}  // namespace

Function sink(const Function& f) {
  return for_bodies_too(f, [](const Function& g) { return Sinker(g).run(); });
}

}  // namespace hone
