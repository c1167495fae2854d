#include "import/common/build.h"

#include "ops/host.h"
#include "type/text.h"

namespace hone::build {

Value joined(const Op& op, Value a, Value b) {
  auto [x, y] = broadcast_pair(a, b, op.name);
  return op(x, y);
}

Value number_like(Value x, double number) {
  return filled(x.graph(), x.dtype(), x.shape(), number);
}

Value filled(Graph& g, DType t, const Shape& shape, double number) {
  return broadcast_to(constant(g, Array::scalar(number, t)), shape);
}

Value integers_filled(Graph& g, DType t, const Shape& shape, std::int64_t number) {
  return broadcast_to(constant(g, Array::scalar_int(number, t)), shape);
}

Value integer_list(Graph& g, const std::vector<std::int64_t>& list, DType t) {
  Array a = Array::zeros(t, {static_cast<std::int64_t>(list.size())});
  for (std::size_t i = 0; i < list.size(); ++i)
    a.set_integer(static_cast<std::int64_t>(i), list[i]);
  return constant(g, a);
}

Value constant_value(Graph& g, const Array& a) {
  if (a.dtype() != DType::text) return constant(g, a);
  std::string bytes;
  Array ends = Array::zeros(DType::i64, a.dims());
  for (std::int64_t i = 0; i < a.count(); ++i) {
    bytes += text_at(a, i);
    ends.set_integer(i, std::ssize(bytes));
  }
  const Array all = Array::of<char>(DType::u8, {std::ssize(bytes)}, bytes);
  return ops::text_literal(constant(g, all), constant(g, ends));
}

Value counted(Graph& g, DType t, const Dim& count) { return iota_value(g, t, {count}, 0); }

Value along_channels(Value v, const Shape& shape) {
  return broadcast_to(along(flatten(v), 1, shape.rank()), shape);
}

Value along(Value v, int axis, int rank) {
  Dims dims = ones(static_cast<std::size_t>(rank));
  dims[static_cast<std::size_t>(axis)] = v.shape().count();
  return reshape_to(v, dims);
}

Value mean_over(Value x, const Axes& axes, bool keep) {
  Value m = ops::mean(x, {{"axes", dims_of_axes(axes)}});
  return keep ? unsqueeze(m, axes) : m;
}

Value sum_over(Value x, const Axes& axes, bool keep) {
  return reduce_axes(ops::reduce_sum, x, axes, keep);
}

Value max_over(Value x, const Axes& axes, bool keep) {
  return reduce_axes(ops::reduce_max, x, axes, keep);
}

Value where_or(Value condition, Value a, double b) {
  return where(condition, a, constant(a.graph(), Array::scalar(b, a.dtype())));
}

Value both(Value a, Value b) { return joined(ops::bit_and, a, b); }

Value take_along(Value x, Value index, int axis) {
  Shape xs = x.shape(), is = index.shape();
  xs[axis] = Dim(1);
  Dim taken = is[axis];
  is[axis] = Dim(1);
  Shape all = broadcast_shape(x.graph(), xs, is, "gather");
  xs = is = all;
  xs[axis] = x.shape()[axis];
  is[axis] = taken;
  return ops::gather_elements(Values{broadcast_to(x, xs), broadcast_to(index, is)},
                              {{"axis", std::int64_t{axis}}});
}

std::pair<Value, Value> of_one_depth(Value a, Value b) {
  if (a.rank() == 0 || b.rank() == 0) return {a, b};
  const int at_a = a.rank() - 1, at_b = b.rank() == 1 ? 0 : b.rank() - 2;
  const Dim depth_a = a.shape()[at_a], depth_b = b.shape()[at_b];
  auto with = [](Value v, int axis, const Dim& number) {
    v.graph().require_equal(
        v.shape()[axis], number,
        cat("inner sizes are ", v.shape()[axis], " and ", number, ", expected equal sizes"));
    Dims dims = v.shape().dims;
    dims[static_cast<std::size_t>(axis)] = number;
    return reshape_to(v, dims);
  };
  if (depth_b.is_number() && !depth_a.is_number()) return {with(a, at_a, depth_b), b};
  if (depth_a.is_number() && !depth_b.is_number()) return {a, with(b, at_b, depth_a)};
  return {a, b};
}

Value with_sizes(Value v, const Dims& sizes, std::string_view what) {
  const std::string why = cat(what, " is ", v.type(), ", expected ", Shape(sizes));
  if (v.rank() != static_cast<int>(sizes.size())) throw UserError(why);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    v.graph().require_equal(v.shape().dims[i], sizes[i], why);
  return reshape_to(v, sizes);
}

Dim settled(std::span<const Dim> equal_sizes) {
  for (const Dim& d : equal_sizes)
    if (d.is_number()) return d;
  return equal_sizes.front();
}

Dims ones(std::size_t n) { return Dims(n, Dim(1)); }

}  // namespace hone::build
