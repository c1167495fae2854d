#include "pass/layout.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "ops/common.h"
#include "pass/rewrite.h"

namespace hone {

namespace {

// Channels-last order of a channels-first value: 0, 2, ..., rank-1, 1.
Axes last_order(int rank) {
  Axes p(static_cast<std::size_t>(rank));
  std::iota(p.begin(), p.end(), 1);
  p.front() = 0;
  p.back() = 1;
  return p;
}

Axes inverse(const Axes& p) {
  Axes q(p.size());
  for (std::size_t i = 0; i < p.size(); ++i)
    q[static_cast<std::size_t>(p[i])] = static_cast<int>(i);
  return q;
}

bool is_identity(const Axes& p) {
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] != static_cast<int>(i)) return false;
  return true;
}

Dims permuted(const Dims& dims, const Axes& p) {
  Dims out;
  for (int axis : p) out.push_back(dims[static_cast<std::size_t>(axis)]);
  return out;
}

int position(const Axes& p, int axis) {
  return static_cast<int>(std::find(p.begin(), p.end(), axis) - p.begin());
}

Value reorder(Value v, const Axes& p) { return is_identity(p) ? v : transpose_by(v, p); }

// A value of the old function in the new one: in its old order, channels-last, or both.
struct Forms {
  Value first, last;
};

class Layouter {
 public:
  explicit Layouter(const Function& f) : from_(f), to_(clone_params(f)), copier_(f, to_) {}

  Function run() {
    for (std::size_t i = 0; i < from_.params().size(); ++i)
      forms_[from_.param(i)] = {to_.param(i), {}};
    for (NodeId n : live_nodes(from_)) {
      Value v(&from_.graph(), n);
      if (forms_.contains(v)) continue;
      OriginScope scope(to_.graph(), copier_.origins_in_target(n));
      node(v);
    }
    for (const Function::Result& r : from_.results()) to_.add_result(first(r.value), r);
    return to_;
  }

 private:
  void node(Value v) {
    if (v.is(ops::conv) && v.attrs().integer_or("channels_last", 0) == 0)
      return set_last(v, convolution(v));
    if (v.is(ops::transpose) && prefers_last(v.operand(0)))
      return set_first(v, merged_transpose(v));
    if (v.op().kind == OpKind::reduction && v.op().is_core() && v.result_count() == 1 &&
        v.attrs().has("axes") && prefers_last(v.operand(0)))
      return set_first(v, reduced(v));
    if (moves_to_last(v)) return set_last(v, in_last_form(v));
    Values operands;
    for (Value operand : v.operands()) operands.push_back(first(operand));
    Value made = to_.graph().intern(v.op(), operands, v.attrs());
    for (std::size_t i = 0; i < v.result_count(); ++i) forms_[v.result(i)] = {made.result(i), {}};
  }

  void set_first(Value v, Value made) { forms_[v] = {made, {}}; }
  void set_last(Value v, Value made) { forms_[v] = {{}, made}; }

  Value first(Value v) {
    Forms& forms = forms_.at(v);
    if (!forms.first) forms.first = reorder(forms.last, inverse(last_order(v.rank())));
    return forms.first;
  }

  Value last(Value v) {
    Forms& forms = forms_.at(v);
    if (!forms.last) forms.last = made_last(v);
    return forms.last;
  }

  // A broadcast is repeated in the new order instead of being transposed at its full size.
  Value made_last(Value v) {
    Axes p = last_order(v.rank());
    if (!v.is(ops::broadcast)) return reorder(first(v), p);
    Value x = first(v.operand(0));
    Dims dims(static_cast<std::size_t>(v.rank() - x.rank()), Dim(1));
    dims.insert(dims.end(), x.shape().dims.begin(), x.shape().dims.end());
    x = reorder(reshape_to(x, dims), p);
    return broadcast_to(x, Shape(permuted(v.shape().dims, p)));
  }

  // Already channels-last, and the old order was not requested yet.
  bool prefers_last(Value v) const {
    auto it = forms_.find(v);
    return it != forms_.end() && it->second.last && !it->second.first;
  }

  bool moves_to_last(Value v) const {
    if (v.result_count() != 1 || v.rank() < 3) return false;
    if (v.is(ops::reshape)) return keeps_channels(v) && prefers_last(v.operand(0));
    if (v.is(ops::broadcast)) return v.operand(0).rank() == v.rank() && prefers_last(v.operand(0));
    bool per_axis = v.is(ops::concat) || v.is(ops::pad) || v.is(ops::slice) ||
                    v.is(ops::reduce_window) || v.is(ops::reverse) || v.is(ops::softmax);
    if (!per_axis && v.op().kind != OpKind::elementwise) return false;
    if (v.op().kind == OpKind::elementwise)
      for (Value operand : v.operands())
        if (operand.shape() != v.shape()) return false;
    for (Value operand : v.operands())
      if (operand.rank() == v.rank() && prefers_last(operand)) return true;
    return false;
  }

  // A reshape of the axes after the first two only.
  static bool keeps_channels(Value v) {
    const Shape &from = v.operand(0).shape(), &to = v.shape();
    return from.rank() >= 3 && from[0] == to[0] && from[1] == to[1];
  }

  Value in_last_form(Value v) {
    Axes p = last_order(v.rank());
    Values operands;
    for (Value operand : v.operands())
      operands.push_back(operand.rank() == v.rank() || v.is(ops::reshape) ? last(operand)
                                                                          : first(operand));
    Attrs attrs = v.attrs();
    for (AttrName name :
         {AttrName("starts"), AttrName("steps"), AttrName("shape"), AttrName("low"),
          AttrName("high"), AttrName("window"), AttrName("strides"), AttrName("dilations"),
          AttrName("pads_low"), AttrName("pads_high"), AttrName("dims"), AttrName("sizes")})
      if (const Attr* a = attrs.find(name))
        if (auto* dims = std::get_if<Dims>(a); dims && dims->size() == p.size())
          attrs.set(name, permuted(*dims, p));
    if (attrs.has("axis"))
      attrs.set("axis", std::int64_t{position(
                            p, normal_axis(attrs.integer("axis"), v.rank(), v.op().name))});
    if (attrs.has("axes")) attrs.set("axes", moved_axes(attrs, p));
    return to_.graph().intern(v.op(), operands, attrs);
  }

  static Dims moved_axes(const Attrs& attrs, const Axes& p) {
    Axes axes;
    for (int axis : axes_of(attrs, "axes")) axes.push_back(position(p, axis));
    std::sort(axes.begin(), axes.end());
    return dims_of_axes(axes);
  }

  Value convolution(Value v) {
    // [O, I/g, k...] -> [k..., I/g, O].
    Axes p(static_cast<std::size_t>(v.rank()));
    std::iota(p.begin(), p.end(), 2);
    p[p.size() - 2] = 1;
    p[p.size() - 1] = 0;
    Values operands = {last(v.operand(0)), transpose_by(first(v.operand(1)), p)};
    Attrs attrs = v.attrs();
    attrs.set("channels_last", std::int64_t{1});
    return to_.graph().intern(ops::conv, operands, attrs);
  }

  Value merged_transpose(Value v) {
    Axes p = last_order(v.rank()), order;
    for (int axis : axes_of(v.attrs(), "perm")) order.push_back(position(p, axis));
    return reorder(last(v.operand(0)), order);
  }

  // Reduces in channels-last order; the remaining axes keep their old order.
  Value reduced(Value v) {
    Value x = v.operand(0);
    Axes p = last_order(x.rank()), axes = axes_of(v.attrs(), "axes");
    Attrs attrs = v.attrs();
    attrs.set("axes", moved_axes(attrs, p));
    Values operands = {last(x)};
    Value made = to_.graph().intern(v.op(), operands, attrs);
    Axes kept;  // old axes in the order of `made`
    for (int axis : p)
      if (std::find(axes.begin(), axes.end(), axis) == axes.end()) kept.push_back(axis);
    Axes sorted = kept, order;
    std::sort(sorted.begin(), sorted.end());
    for (int axis : sorted) order.push_back(position(kept, axis));
    return reorder(made, order);
  }

  const Function& from_;
  Function to_;
  Copier copier_;
  std::unordered_map<Value, Forms, ValueHash> forms_;
};

bool has_convolution(const Function& f) {
  for (NodeId n : live_nodes(f))
    if (&f.graph().op(n) == &ops::conv) return true;
  return false;
}

}  // namespace

Function layout(const Function& f) {
  return for_bodies_too(
      f, [](const Function& g) { return has_convolution(g) ? Layouter(g).run() : g; });
}

}  // namespace hone
