#include "schedule/views.h"

#include "ops/ops.h"

namespace hone {

Layout dense_layout(const Shape& shape) { return {0, dense_strides(shape)}; }

Layout memory_layout(const Function& f, Value v) {
  if (!v.is(ops::param)) return dense_layout(v.shape());
  const auto number = static_cast<std::size_t>(v.attrs().integer("index"));
  const std::optional<Capacity>& capacity = f.params()[number].capacity;
  return capacity ? dense_layout(whole_type(v.type(), capacity).shape) : dense_layout(v.shape());
}

bool are_dense(const Dims& strides, const Dims& sizes) {
  Dim stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == Dim(1)) continue;
    if (strides[i] != stride) return false;
    stride = stride * sizes[i];
  }
  return true;
}

namespace {

// Consecutive axes (sizes other than 1) that the other side groups differently.
struct AxisRun {
  std::size_t next;  // first axis not yet taken
  std::vector<std::size_t> axes;
  Dim size = 1;

  void take(const Dims& dims) {
    size = size * dims[next];
    axes.push_back(next++);
  }
};

void skip_ones(std::size_t& at, const Dims& dims) {
  while (at < dims.size() && dims[at] == Dim(1)) ++at;
}

// True if the axes of a run lie in memory as one axis would.
bool is_one_axis(const std::vector<std::size_t>& axes, const Dims& dims, const Dims& strides) {
  for (std::size_t i = 0; i + 1 < axes.size(); ++i)
    if (strides[axes[i]] != strides[axes[i + 1]] * dims[axes[i + 1]]) return false;
  return true;
}

}  // namespace

std::optional<Dims> reshape_strides(const Dims& from, const Dims& strides, const Dims& to) {
  if (are_dense(strides, from)) return dense_strides(Shape(to));
  Dims out(to.size(), 1);
  std::size_t a_next = 0, b_next = 0;
  while (true) {
    skip_ones(a_next, from);
    skip_ones(b_next, to);
    if (a_next == from.size() || b_next == to.size()) break;
    AxisRun a{a_next, {}, 1}, b{b_next, {}, 1};
    a.take(from);
    b.take(to);
    while (!(a.size == b.size)) {
      bool a_less = prove_less(a.size, b.size) == true || b.next == to.size();
      AxisRun& shorter = a_less ? a : b;
      const Dims& dims = a_less ? from : to;
      skip_ones(shorter.next, dims);
      if (shorter.next == dims.size()) return std::nullopt;
      shorter.take(dims);
    }
    if (!is_one_axis(a.axes, from, strides)) return std::nullopt;
    Dim stride = strides[a.axes.back()];
    for (std::size_t i = b.axes.size(); i-- > 0;) {
      out[b.axes[i]] = stride;
      stride = stride * to[b.axes[i]];
    }
    a_next = a.next;
    b_next = b.next;
  }
  if (a_next != from.size() || b_next != to.size()) return std::nullopt;
  return out;
}

namespace {

std::optional<Layout> slice_layout(const Attrs& attrs, Layout at) {
  const Dims &starts = attrs.dims("starts"), &steps = attrs.dims("steps");
  for (std::size_t i = 0; i < at.strides.size(); ++i) {
    at.offset = at.offset + starts[i] * at.strides[i];
    at.strides[i] = at.strides[i] * steps[i];
  }
  return at;
}

}  // namespace

std::optional<Layout> view_layout(const Graph& graph, NodeId node, const Layout& operand) {
  const Op& op = graph.op(node);
  const Attrs& attrs = graph.attrs(node);
  if (&op == &ops::slice) return slice_layout(attrs, operand);
  if (&op == &ops::transpose) {
    Layout out{operand.offset, {}};
    for (const Dim& axis : attrs.dims("perm"))
      out.strides.push_back(operand.strides[static_cast<std::size_t>(axis.number())]);
    return out;
  }
  if (&op != &ops::reshape) return std::nullopt;
  const Value& from = graph.operands(node)[0];
  std::optional<Dims> strides =
      reshape_strides(from.shape().dims, operand.strides, graph.type(node).shape.dims);
  if (!strides) return std::nullopt;
  return Layout{operand.offset, std::move(*strides)};
}

std::optional<Layout> operand_layout(const Graph& graph, NodeId node, const Layout& result) {
  const Op& op = graph.op(node);
  const Attrs& attrs = graph.attrs(node);
  const Dims &from = graph.operands(node)[0].shape().dims, &to = graph.type(node).shape.dims;
  if (&op == &ops::slice) return from == to ? std::optional(result) : std::nullopt;
  if (&op == &ops::transpose) {
    Layout out{result.offset, Dims(from.size(), 1)};
    const Dims& perm = attrs.dims("perm");
    for (std::size_t i = 0; i < perm.size(); ++i)
      out.strides[static_cast<std::size_t>(perm[i].number())] = result.strides[i];
    return out;
  }
  if (&op != &ops::reshape) return std::nullopt;
  std::optional<Dims> strides = reshape_strides(to, result.strides, from);
  if (!strides) return std::nullopt;
  return Layout{result.offset, std::move(*strides)};
}

Dims normal_strides(const View& view) {
  Dims out = view.strides;
  normalize_strides(view.dims, out);
  return out;
}

bool is_same_place(const View& a, const View& b) {
  return a.buffer == b.buffer && a.offset == b.offset &&
         (a.strides == b.strides || normal_strides(a) == normal_strides(b));
}

void normalize_strides(const Dims& sizes, std::span<Dim> strides) {
  for (std::size_t i = strides.size(); i-- > 0;)
    if (sizes[i] == Dim(1))
      strides[i] = i + 1 == strides.size() ? Dim(1) : strides[i + 1] * sizes[i + 1];
}

}  // namespace hone
