#include "ops/common.h"

#include <algorithm>
#include <numeric>

namespace hone {

namespace {

Value binary(const Op& op, Value a, Value b) {
  for (const Value* v : {&a, &b}) static_cast<void>(v->graph());  // rejects an empty value
  if (a.rank() == 0 && b.rank() != 0) a = broadcast_to(a, b.shape());
  if (b.rank() == 0 && a.rank() != 0) b = broadcast_to(b, a.shape());
  return op(a, b);
}

Dims sizes_without(const Shape& shape, const Axes& axes) {
  Dims out;
  for (int i = 0; i < shape.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) out.push_back(shape[i]);
  return out;
}

Dims sizes_kept(Shape shape, const Axes& axes) {
  for (int a : axes) shape[a] = 1;
  return shape.dims;
}

}  // namespace

Value operator+(Value a, Value b) { return binary(ops::add, a, b); }
Value operator-(Value a, Value b) { return binary(ops::sub, a, b); }
Value operator*(Value a, Value b) { return binary(ops::mul, a, b); }
Value operator/(Value a, Value b) { return binary(ops::div, a, b); }
Value operator+(Value a, double b) { return ops::add(a, constant_like(a, b)); }
Value operator-(Value a, double b) { return ops::sub(a, constant_like(a, b)); }
Value operator*(Value a, double b) { return ops::mul(a, constant_like(a, b)); }
Value operator/(Value a, double b) { return ops::div(a, constant_like(a, b)); }
Value operator+(double a, Value b) { return ops::add(constant_like(b, a), b); }
Value operator-(double a, Value b) { return ops::sub(constant_like(b, a), b); }
Value operator*(double a, Value b) { return ops::mul(constant_like(b, a), b); }
Value operator/(double a, Value b) { return ops::div(constant_like(b, a), b); }
Value operator-(Value a) { return ops::neg(a); }

Pattern operator+(Pattern a, Pattern b) { return ops::add(a, b); }
Pattern operator-(Pattern a, Pattern b) { return ops::sub(a, b); }
Pattern operator*(Pattern a, Pattern b) { return ops::mul(a, b); }
Pattern operator/(Pattern a, Pattern b) { return ops::div(a, b); }
Pattern operator+(Pattern a, double b) { return ops::add(a, Pattern::number(b)); }
Pattern operator-(Pattern a, double b) { return ops::sub(a, Pattern::number(b)); }
Pattern operator*(Pattern a, double b) { return ops::mul(a, Pattern::number(b)); }
Pattern operator/(Pattern a, double b) { return ops::div(a, Pattern::number(b)); }
Pattern operator-(Pattern a) { return ops::neg(a); }

Value greater(Value a, Value b) { return binary(ops::lt, b, a); }
Value greater_equal(Value a, Value b) { return binary(ops::le, b, a); }

Value constant_like(Value x, double number) {
  Graph& graph = x.graph();  // rejects an empty value
  return broadcast_to(scalar(graph, number, x.dtype()), x.shape());
}

Value integer_like(Value x, std::int64_t number) {
  Graph& graph = x.graph();
  return broadcast_to(constant(graph, Array::scalar_int(number, x.dtype())), x.shape());
}

Value size_value(Graph& graph, const Dim& d, DType dtype) {
  return cast_to(dims_value(graph, {d}, DType::i64, {}), dtype);
}

Value iota_value(Graph& graph, DType dtype, const Shape& shape, int axis) {
  return graph.intern(
      ops::iota, {},
      {{"dtype", dtype}, {"shape", shape.dims}, {"axis", normal_axis(axis, shape.rank(), "iota")}});
}

Value cast_to(Value v, DType dtype) {
  return v.dtype() == dtype ? v : ops::cast(v, {{"dtype", dtype}});
}

Value reshape_to(Value v, Dims dims) {
  return v.shape().dims == dims ? v : ops::reshape(v, {{"shape", std::move(dims)}});
}

Value flatten(Value v) { return reshape_to(v, {v.shape().count()}); }

Value transpose_by(Value v, std::span<const int> perm) {
  bool same = true;
  for (std::size_t i = 0; i < perm.size(); ++i) same = same && perm[i] == static_cast<int>(i);
  if (same && static_cast<int>(perm.size()) == v.rank()) return v;
  return ops::transpose(v, {{"perm", dims_of_axes(perm)}});
}

Value transpose_matrix(Value v) {
  if (v.rank() < 2)
    throw UserError("transpose: the operand is ", v.type(), ", expected at least two axes");
  Axes perm = all_axes(v.rank());
  std::swap(perm.end()[-1], perm.end()[-2]);
  return transpose_by(v, perm);
}

Value squeeze(Value v, Axes axes) {
  for (int& a : axes) a = normal_axis(a, v.rank(), "squeeze");
  for (int a : axes)
    v.graph().require_equal(v.shape()[a], 1,
                            cat("squeeze: axis ", a, " of ", v.type(), " is ", v.shape()[a],
                                ", expected 1; only axes of size 1 can be removed"));
  return reshape_to(v, sizes_without(v.shape(), axes));
}

Value unsqueeze(Value v, Axes axes) {
  int rank = v.rank() + static_cast<int>(axes.size());
  for (int& a : axes) a = normal_axis(a, rank, "unsqueeze");
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    throw UserError("unsqueeze: axes ", Shape(dims_of_axes(axes)), " name one axis twice");
  Dims dims = v.shape().dims;
  for (int a : axes) dims.insert(dims.begin() + a, Dim(1));
  return reshape_to(v, std::move(dims));
}

namespace {

// Start indices of a slice: `at` along one axis, zeros elsewhere.
Value start_at(int rank, int axis, Value at) {
  Values all(static_cast<std::size_t>(rank),
             constant(at.graph(), Array::from_ints(std::vector<std::int64_t>{0})));
  all[static_cast<std::size_t>(axis)] = reshape_to(at, {1});
  return concat_values(all, 0);
}

}  // namespace

Value slice_at(Value v, int axis, Value at) {
  Dims sizes = v.shape().dims, low(sizes.size(), 0), high = low;
  Dim& size = sizes[static_cast<std::size_t>(axis)];
  size = min(size, 1);
  high[static_cast<std::size_t>(axis)] = Dim(1) - size;
  Value slice = ops::dynamic_slice(Values{v, start_at(v.rank(), axis, at)}, {{"sizes", sizes}});
  return pad_with(slice, constant(v.graph(), Array::zeros(v.dtype(), {})), low, high);
}

Value updated_at(Value v, Value slice, Value at) {
  slice = slice_axis(slice, 0, 0, min(v.shape()[0], 1));
  return ops::dynamic_update(Values{v, slice, start_at(v.rank(), 0, at)});
}

Value concat_values(std::span<const Value> values, int axis) {
  if (values.empty()) throw UserError("concat: got no operands, expected at least one");
  if (values.size() == 1) return values[0];
  // The code size and compile time of a concat grow with its operands, so many operands are joined
  // in groups, which are contiguous in the result and have similar code.
  constexpr std::size_t most = 32;
  if (values.size() > most) {
    Values groups;
    for (std::size_t i = 0; i < values.size(); i += most)
      groups.push_back(concat_values(values.subspan(i, std::min(most, values.size() - i)), axis));
    return concat_values(groups, axis);
  }
  return ops::concat(Values(values.begin(), values.end()),
                     {{"axis", normal_axis(axis, values[0].rank(), "concat")}});
}

Value reverse_axes(Value v, Axes axes) {
  if (axes.empty()) return v;
  for (int& a : axes) a = normal_axis(a, v.rank(), "reverse");
  std::sort(axes.begin(), axes.end());
  return ops::reverse(v, {{"axes", dims_of_axes(axes)}});
}

Value slice_axis(Value v, int axis, const Dim& start, const Dim& size, std::int64_t step) {
  if (step == 0)
    throw UserError("slice: the step of axis ", axis, " is 0, expected a nonzero integer");
  axis = normal_axis(axis, v.rank(), "slice");
  if (step == 1 && start == Dim(0) && size == v.shape()[axis]) return v;
  Dim lowest = start;
  if (step < 0) lowest = size == Dim(0) ? Dim(0) : start + (size - Dim(1)) * Dim(step);
  auto rank = static_cast<std::size_t>(v.rank()), at = static_cast<std::size_t>(axis);
  Dims starts(rank, 0), sizes = v.shape().dims, steps(rank, 1);
  starts[at] = lowest;
  sizes[at] = size;
  steps[at] = step < 0 ? -step : step;
  Value part = ops::slice(
      v, {{"starts", std::move(starts)}, {"sizes", std::move(sizes)}, {"steps", std::move(steps)}});
  return step < 0 ? reverse_axes(part, {axis}) : part;
}

Values split_axis(Value v, int axis, std::span<const Dim> sizes) {
  axis = normal_axis(axis, v.rank(), "split");
  Values parts;
  Dim start = 0;
  for (const Dim& size : sizes) {
    parts.push_back(slice_axis(v, axis, start, size));
    start = start + size;
  }
  v.graph().require_equal(start, v.shape()[axis],
                          cat("split: the parts of axis ", axis, " of ", v.type(), " add up to ",
                              start, ", expected ", v.shape()[axis], ", the size of the axis"));
  return parts;
}

Value take_axis(Value v, int axis, const Dim& index) {
  axis = normal_axis(axis, v.rank(), "take");
  return reshape_to(slice_axis(v, axis, index, 1), sizes_without(v.shape(), {axis}));
}

Value pad_with(Value v, Value number, Dims low, Dims high) {
  bool nothing = true;
  for (const Dims* list : {&low, &high})
    for (const Dim& d : *list) nothing = nothing && d == Dim(0);
  if (nothing) return v;
  return ops::pad(Values{v, number}, {{"low", std::move(low)}, {"high", std::move(high)}});
}

namespace {

// Whether d must be 1 to broadcast, since it cannot equal `other`.
bool must_be_one(const Dim& d, const Dim& other) {
  return !d.is_number() && d.low() <= 1 && d.high() >= 1 && prove_equal(d, other) == false;
}

}  // namespace

Value broadcast_to(Value v, const Shape& shape) {
  if (v.shape() == shape) return v;
  Dims dims = v.shape().dims;
  const std::size_t first = shape.dims.size() - std::min(dims.size(), shape.dims.size());
  for (std::size_t i = 0; i < dims.size() && first + i < shape.dims.size(); ++i)
    if (must_be_one(dims[i], shape.dims[first + i])) dims[i] = 1;
  return ops::broadcast(reshape_to(v, dims), {{"shape", shape.dims}});
}

Shape broadcast_shape(Graph& graph, const Shape& a, const Shape& b, std::string_view who) {
  Shape out = a.rank() >= b.rank() ? a : b;
  for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
    const Dim &x = a[-i], &y = b[-i];
    if (x == y || y == Dim(1)) {
      out[-i] = x;
    } else if (x == Dim(1)) {
      out[-i] = y;
    } else {
      const bool first = must_be_one(x, y), second = !first && must_be_one(y, x);
      graph.require_equal(second ? Dim(1) : x, first ? Dim(1) : y,
                          cat(who, ": shapes ", a, " and ", b, " do not broadcast: ", x,
                              " against ", y, " at axis -", i, "; sizes must be equal or 1"));
      out[-i] = second || (!first && x.is_number()) ? x : y;
    }
  }
  return out;
}

std::pair<Value, Value> broadcast_pair(Value a, Value b, std::string_view who) {
  if (a.shape() == b.shape()) return {a, b};
  Shape shape = broadcast_shape(a.graph(), a.shape(), b.shape(), who);
  return {broadcast_to(a, shape), broadcast_to(b, shape)};
}

Values broadcast_all(std::span<const Value> values, std::string_view who) {
  if (values.empty()) return {};
  Shape shape = values[0].shape();
  for (const Value& v : values.subspan(1))
    shape = broadcast_shape(v.graph(), shape, v.shape(), who);
  Values out;
  for (const Value& v : values) out.push_back(broadcast_to(v, shape));
  return out;
}

Value where(Value condition, Value a, Value b) {
  const Value three[] = {condition, a, b};
  return ops::select(broadcast_all(three, "where"));
}

Value sum_to(Value dy, const Shape& shape) {
  int extra = dy.rank() - shape.rank();
  Axes axes;
  for (int i = 0; i < dy.rank(); ++i)
    if (i < extra || (shape[i - extra] == Dim(1) && dy.shape()[i] != Dim(1))) axes.push_back(i);
  return reshape_to(axes.empty() ? dy : reduce_axes(ops::reduce_sum, dy, axes), shape.dims);
}

Value reduce_axes(const Op& op, Value v, Axes axes, bool keep) {
  for (int& a : axes) a = normal_axis(a, v.rank(), op.name);
  std::sort(axes.begin(), axes.end());
  Value reduced = op(v, {{"axes", dims_of_axes(axes)}});
  return keep ? reshape_to(reduced, sizes_kept(v.shape(), axes)) : reduced;
}

Value broadcast_back(Value reduced, const Axes& axes, const Shape& full) {
  return broadcast_to(reshape_to(reduced, sizes_kept(full, axes)), full);
}

Value dot_general(Value a, Value b, const AxisPairs& batch, const AxisPairs& contract,
                  std::optional<DType> dtype) {
  auto flat = [&](const AxisPairs& pairs) {
    Dims list;
    for (auto [p, q] : pairs) {
      list.push_back(normal_axis(p, a.rank(), "dot"));
      list.push_back(normal_axis(q, b.rank(), "dot"));
    }
    return list;
  };
  Attrs attrs{{"batch", flat(batch)}, {"contract", flat(contract)}};
  if (dtype) attrs.set("dtype", *dtype);
  return ops::dot(Values{a, b}, std::move(attrs));
}

namespace {

// Attributes of a window over all axes of x.
Attrs window_attrs(Value x, const Window& w) {
  auto rank = static_cast<std::size_t>(x.rank()), spatial = w.size.size();
  if (rank != spatial + 2)
    throw UserError("pool: the operand is ", x.type(), ", expected ", spatial + 2,
                    " axes (batch, channels and the ", spatial, " of the window)");
  auto spread = [&](const Dims& list, std::int64_t other) {
    if (list.size() != spatial)
      throw UserError("pool: a list is ", Shape(list), ", expected ", spatial,
                      " entries, as the window has");
    Dims all(rank, other);
    std::copy(list.begin(), list.end(), all.begin() + (w.channels_last ? 1 : 2));
    return all;
  };
  return {{"window", spread(w.size, 1)},
          {"strides", spread(w.strides, 1)},
          {"dilations", spread(w.dilations, 1)},
          {"pads_low", spread(w.pads_low, 0)},
          {"pads_high", spread(w.pads_high, 0)}};
}

}  // namespace

Value max_pool(Value x, const Window& w) {
  Attrs attrs = window_attrs(x, w);
  attrs.set("kind", std::string("max"));
  return ops::reduce_window(x, std::move(attrs));
}

Value average_pool(Value x, const Window& w, bool include_pads) {
  Attrs attrs = window_attrs(x, w);
  attrs.set("include_pads", std::int64_t{include_pads});
  return ops::avg_pool(x, std::move(attrs));
}

DType sum_dtype(DType t) { return t == DType::f16 || t == DType::bf16 ? DType::f32 : t; }

int normal_axis(std::int64_t axis, int rank, std::string_view who) {
  if (rank == 0) throw UserError(who, ": axis is ", axis, ", but the tensor is a scalar");
  if (axis < -rank || axis >= rank)
    throw UserError(who, ": axis is ", axis, ", expected -", rank, " to ", rank - 1);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Axes all_axes(int rank) {
  Axes axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Axes axes_of(const Attrs& attrs, AttrName name) {
  Axes axes;
  for (std::int64_t n : attrs.integers(name)) axes.push_back(static_cast<int>(n));
  return axes;
}

Dims dims_of_axes(std::span<const int> axes) { return Dims(axes.begin(), axes.end()); }

}  // namespace hone
