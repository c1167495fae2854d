#include <algorithm>
#include <cmath>
#include <limits>

#include "base/amount.h"
#include "base/checked.h"
#include "import/onnx/build.h"
#include "import/onnx/context.h"
#include "import/onnx/known.h"
#include "import/onnx/open.h"
#include "ops/require.h"
#include "type/text.h"

namespace hone::onnx {

namespace {

constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

Values identity(NodeContext& c) {
  c.ignore("consumed_inputs");
  return {c.in(0)};
}

template <class T>
Array list_array(DType dtype, const std::vector<T>& list) {
  return Array::of<T>(dtype, {static_cast<std::int64_t>(list.size())}, list);
}

Array constant_array(NodeContext& c) {
  if (std::optional<Array> a = c.tensor("value")) return *a;
  if (std::optional<Array> a = c.sparse("sparse_value")) return *a;
  if (c.has_attribute("value_int")) return Array::scalar_int(c.integer("value_int", 0), DType::i64);
  if (c.has_attribute("value_float")) return Array::scalar(c.real("value_float", 0), DType::f32);
  if (auto list = c.integers("value_ints")) return list_array(DType::i64, *list);
  if (auto list = c.reals("value_floats")) return list_array(DType::f32, *list);
  if (c.has_attribute("value_string")) {
    const std::string_view text = c.text("value_string", "");
    return text_array({}, std::span(&text, 1));
  }
  if (auto list = c.texts("value_strings")) return text_array({std::ssize(*list)}, *list);
  c.unsupported(
      "no attribute with a supported value is given, expected one of value, sparse_value and "
      "value_*");
}

Values constant_import(NodeContext& c) { return {constant_value(c.graph(), constant_array(c))}; }

Values constant_of_shape(NodeContext& c) {
  Array value = c.tensor("value").value_or(Array::scalar(0, DType::f32));
  if (value.count() != 1) c.bad_attribute("value", value.type(), "one element");
  Value one = reshape_to(constant_value(c.graph(), value), {});
  return {broadcast_to(one, Shape(c.open_contents(0)))};
}

Values shape_import(NodeContext& c) {
  const Dims& dims = c.in(0).shape().dims;
  std::int64_t rank = static_cast<std::int64_t>(dims.size());
  auto clamp = [&](std::int64_t i) {
    return std::clamp<std::int64_t>(i < 0 ? i + rank : i, 0, rank);
  };
  std::int64_t start = clamp(c.integer("start", 0)), end = clamp(c.integer("end", rank));
  Dims part;
  for (std::int64_t i = start; i < end; ++i) part.push_back(dims[static_cast<std::size_t>(i)]);
  std::int64_t n = static_cast<std::int64_t>(part.size());
  return {dims_value(c.graph(), part, DType::i64, {n})};
}

Values size_import(NodeContext& c) {
  return {dims_value(c.graph(), {c.in(0).shape().count()}, DType::i64, {})};
}

// A shape that data computes: zeros and -1 are replaced in the run.
Values open_reshape(NodeContext& c, bool zeros) {
  Value x = c.in(0), given = cast_to(flatten(c.in(1)), DType::i64);
  hone::Graph& g = c.graph();
  const std::optional<std::int64_t> rank = given.shape()[0].as_number();
  constexpr std::int64_t most_axes = 16;
  if (!rank || *rank > most_axes) c.depends_on_data(1);
  const Dim total = x.shape().count();
  Dims copied;
  for (int i = 0; i < *rank; ++i) copied.push_back(i < x.rank() ? x.shape()[i] : Dim(0));
  if (!zeros)
    given = ops::select(ops::eq(given, integer_like(given, 0)),
                        dims_value(g, copied, DType::i64, {*rank}), given);
  Value open = ops::eq(given, integer_like(given, -1));
  Value others =
      reduce_axes(ops::reduce_prod, ops::select(open, integer_like(given, 1), given), {0});
  Value rest = ops::div(size_value(g, total, DType::i64), ops::maximum(others, integer(g, 1)));
  given = ops::select(open, broadcast_to(rest, given.shape()), given);
  Dims shape;
  for (std::int64_t i = 0; i < *rank; ++i)
    shape.push_back(c.measured(slice_axis(given, 0, i, 1), max(total, 1)));
  return {reshape_to(x, shape)};
}

// The size that -1 stands for, count / rest. The other sizes may be 0 in a run: where they are
// factors of the count they cancel, else the size is 0 as the count is.
Dim remaining_size(const Dim& count, const Dim& rest) {
  if (rest.low() > 0) return floor_div(count, rest);
  if (count != Dim(0))
    if (const std::optional<Dim> exact = exact_quotient(count, rest)) return *exact;
  return floor_div(count, max(rest, 1));
}

// 0 copies the size of that axis of x, unless zeros are allowed; one -1 follows from the rest.
Values reshape_import(NodeContext& c) {
  c.ignore("consumed_inputs");
  const bool zeros = c.flag("allowzero");
  Value x = c.in(0);
  auto attribute = c.integers("shape");
  if (!attribute && c.decides(1)) return open_reshape(c, zeros);
  Dims shape = attribute ? dims_of(*attribute) : c.contents(1);
  Dim rest = 1;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == Dim(0) && !zeros) {
      if (static_cast<int>(i) >= x.rank())
        c.fail(cat("the new size at axis ", i,
                   " is 0, which copies the input's size, but the input is ", x.type()));
      shape[i] = x.shape()[static_cast<int>(i)];
    }
    if (shape[i] != Dim(-1)) {
      rest = rest * shape[i];
      continue;
    }
    if (open)
      c.fail(cat("the new shape ", Shape(shape),
                 " has more than one -1; only one size can be inferred"));
    open = i;
  }
  if (open) shape[*open] = remaining_size(x.shape().count(), rest);
  return {reshape_to(x, shape)};
}

Values flatten_import(NodeContext& c) {
  Value x = c.in(0);
  std::int64_t axis = c.integer("axis", 1);
  if (axis < 0) axis += x.rank();
  if (axis < 0 || axis > x.rank())
    c.bad_attribute("axis", c.integer("axis", 1),
                    cat(-x.rank(), " to ", x.rank(), " for ", x.type()));
  std::span<const Dim> dims = x.shape().dims;
  auto split = static_cast<std::size_t>(axis);
  return {reshape_to(x, {product(dims.first(split)), product(dims.subspan(split))})};
}

// Without axes all of size 1 go; whether an open size is 1 is a question about sizes.
Values squeeze_import(NodeContext& c) {
  Value x = c.in(0);
  if (auto axes = c.integers("axes")) return {squeeze(x, c.axes(*axes, x.rank()))};
  if (c.has(1)) return {over_axes(c, 1, x.rank(), [&](const Axes& a) { return squeeze(x, a); })};
  Axes ones;
  for (int i = 0; i < x.rank(); ++i)
    if (c.assumptions().holds(equal(x.shape()[i], 1))) ones.push_back(i);
  return {squeeze(x, ones)};
}

Values unsqueeze_import(NodeContext& c) {
  Value x = c.in(0);
  if (auto axes = c.integers("axes"))
    return {unsqueeze(x, c.axes(*axes, x.rank() + static_cast<int>(axes->size())))};
  if (!c.has(1)) c.fail("input 1 ('axes') is missing; it is required");
  const std::optional<std::int64_t> more = c.in(1).shape().count().as_number();
  constexpr std::int64_t most_axes = 64;
  if (!more || *more > most_axes) c.depends_on_data(1);
  return {over_axes(c, 1, x.rank() + static_cast<int>(*more),
                    [&](const Axes& a) { return unsqueeze(x, a); })};
}

// One axis of `size` elements, or of 1, repeated as often as data says; its number of elements must
// be 1 where the axis has more.
Value expanded_by(NodeContext& c, Value x, int axis, Value wanted, const Dim& limit) {
  hone::Graph& g = c.graph();
  const Dim size = x.shape()[axis];
  if (prove_equal(size, 1) == true) {
    Shape to = x.shape();
    to[axis] = c.measured(wanted, limit);
    return broadcast_to(x, to);
  }
  Value here = size_value(g, size, DType::i64), one = integer(g, 1);
  Value is_one = ops::eq(here, one);
  Value fits = ops::bit_or(is_one, ops::bit_or(ops::eq(wanted, one), ops::eq(wanted, here)));
  require_within(ops::select(fits, here, wanted), size, size, "a size that does not broadcast");
  if (prove_equal(size, 1) == false) return x;
  const Dim n = c.measured(ops::select(is_one, wanted, here), max(size, limit));
  return at_clamped(x, axis, counted(g, DType::i64, n));
}

Values expand_import(NodeContext& c) {
  Value x = c.in(0);
  const std::vector<NodeContext::Element> wanted = c.elements(1);
  Dims known = ones(wanted.size());
  std::size_t open = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    known[i] = wanted[i].known.value_or(1);
    open += !wanted[i].known;
  }
  const Shape to = broadcast_shape(c.graph(), x.shape(), Shape(known), c.op());
  if (open == 0) return {broadcast_to(x, to)};
  const int more = static_cast<int>(wanted.size()) - x.rank();
  if (more > 0) {
    Axes axes;
    for (int i = 0; i < more; ++i) axes.push_back(i);
    x = unsqueeze(x, axes);
  }
  const std::size_t skipped = static_cast<std::size_t>(std::max(-more, 0));
  x = broadcast_to(x, to);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!wanted[i].known)
      x = expanded_by(c, x, static_cast<int>(i + skipped), wanted[i].open, c.open_limit(open));
  return {x};
}

Values transpose_import(NodeContext& c) {
  Value x = c.in(0);
  Axes perm;
  if (auto list = c.integers("perm"))
    for (std::int64_t a : *list) perm.push_back(c.axis(a, x.rank()));
  else
    for (int i = x.rank(); i-- > 0;) perm.push_back(i);
  return {transpose_by(x, perm)};
}

Values concat_import(NodeContext& c) {
  Values all = c.all_inputs();
  return {concat_values(all, c.axis(c.integer("axis", 1), all[0].rank()))};
}

// As many parts as asked for, all but the last of equal size.
Dims equal_parts(NodeContext& c, const Dim& size) {
  std::int64_t parts = c.integer("num_outputs", static_cast<std::int64_t>(c.outputs()));
  if (parts < 1 || parts != static_cast<std::int64_t>(c.outputs()))
    c.bad_attribute("num_outputs", parts, cat(c.outputs(), ", the number of outputs"));
  Dims out;
  Dim each = ceil_div(size, parts), left = size;
  for (std::int64_t i = 0; i < parts; ++i) {
    out.push_back(min(each, left));
    left = left - out.back();
  }
  return out;
}

// Sizes that an operand holds, known or not.
Dims open_parts(NodeContext& c, const Dim& size) {
  const std::size_t n = c.outputs();
  if (!c.decides(1)) return c.contents(1);
  Dims out = c.open_contents(1, Dims(n, size));
  Dim sum = 0;
  for (const Dim& d : out) sum = sum + d;
  c.graph().add_check({sum, size,
                       cat("Split: the sizes of the parts add up to ", sum, ", expected ", size,
                           ", the size of the axis")});
  return out;
}

Values split_import(NodeContext& c) {
  Value x = c.in(0);
  int axis = c.axis(c.integer("axis", 0), x.rank());
  Dims sizes;
  if (auto list = c.integers("split"))
    sizes = dims_of(*list);
  else
    sizes = c.has(1) ? open_parts(c, x.shape()[axis]) : equal_parts(c, x.shape()[axis]);
  for (const Dim& d : sizes)
    if (d.low() < 0) c.fail(cat("the size of a part is ", d, ", expected 0 or more"));
  if (sizes.size() != c.outputs())
    c.fail(cat("'split' has ", amount(sizes.size(), "element", "elements"), ", expected ",
               c.outputs(), ", one for each output"));
  return split_axis(x, axis, sizes);
}

// 1 where at < 0, else 0.
Dim is_negative(const Dim& at) { return Dim(1) - min(max(at + Dim(1), 0), 1); }

// A bound of Slice counted from the front, before it is clamped. Sums that would not fit in 64 bits
// lie beyond every size anyway.
Dim from_front(const Dim& at, const Dim& size) {
  if (at.is_number() && at.number() < -(unbounded / 2)) return -(unbounded / 2);
  if (at.is_number() && at.number() > unbounded / 2) return unbounded / 2;
  if (at.low() >= 0) return at;
  if (at.high() < 0) return at + size;
  return at + size * is_negative(at);
}

Dim clamped(const Dim& at, const Dim& low, const Dim& high) { return min(max(at, low), high); }

// No axis is longer than the largest step that is told apart, which leaves room for sums.
std::int64_t checked_step(NodeContext& c, std::int64_t step, int axis) {
  constexpr std::int64_t most = std::int64_t{1} << 48;
  if (step == 0) c.fail(cat("the step at axis ", axis, " is 0, expected a nonzero integer"));
  return std::clamp(step, -most, most);
}

Value slice_one(NodeContext& c, Value x, int axis, const Dim& start, const Dim& end,
                std::int64_t step) {
  const Dim size = x.shape()[axis];
  step = checked_step(c, step, axis);
  Dim from = from_front(start, size), to = from_front(end, size);
  if (step > 0) {
    from = clamped(from, 0, size);
    to = clamped(to, 0, size);
    return slice_axis(x, axis, from, ceil_div(max(to - from, 0), step), step);
  }
  // Backwards the end lies before the last element taken: -1 is before the first of the axis.
  Dim last = size - Dim(1);
  from = clamped(from, -1, last);
  to = clamped(to, -1, last);
  return slice_axis(x, axis, from, ceil_div(max(from - to, 0), -step), step);
}

struct Bounds {
  Dims starts, ends;
  std::vector<std::int64_t> axes, steps;
};

// Attributes before opset 10, operands since.
Bounds slice_bounds(NodeContext& c) {
  Bounds b;
  if (c.opset() < 10) {
    b.starts = dims_of(c.integers("starts").value_or(b.axes));
    b.ends = dims_of(c.integers("ends").value_or(b.axes));
    b.axes = c.integers("axes").value_or(b.axes);
  } else {
    b.starts = c.contents(1);
    b.ends = c.contents(2);
    if (c.has(3)) b.axes = c.numbers(3);
    if (c.has(4)) b.steps = c.numbers(4);
  }
  const std::size_t n = b.starts.size();
  if (b.axes.empty())
    for (std::size_t i = 0; i < n; ++i) b.axes.push_back(static_cast<std::int64_t>(i));
  if (b.steps.empty()) b.steps.assign(n, 1);
  if (n != b.ends.size() || n != b.axes.size() || n != b.steps.size())
    c.fail(cat("starts, ends, axes and steps have ", n, ", ", b.ends.size(), ", ", b.axes.size(),
               " and ", b.steps.size(), " elements, expected equal numbers"));
  return b;
}

// A bound of Slice that data holds, counted from the front and clamped.
Value clamped_bound(Value at, const Dim& size, std::int64_t low, const Dim& high) {
  hone::Graph& g = at.graph();
  at = cast_to(reshape_to(at, {}), DType::i64);
  Value length = size_value(g, size, DType::i64), zero = integer(g, 0);
  Value front = ops::select(ops::lt(at, zero), at + length, at);
  return ops::minimum(ops::maximum(front, integer(g, low)), size_value(g, high, DType::i64));
}

// end - start, where the graph shows that it is a number: x[i:i + 1].
std::optional<std::int64_t> known_distance(Value start, Value end) {
  if (start == end) return 0;
  if (!end.is(ops::add)) return std::nullopt;
  for (const std::size_t i : {0u, 1u})
    if (end.operand(i) == start)
      if (std::optional<Array> a = known_array(end.operand(1 - i)); a && a->count() == 1)
        return a->integer(0);
  return std::nullopt;
}

// How many elements there are at most.
Dim most_between(const Dim& size, Value start, Value end, std::int64_t by) {
  const std::optional<std::int64_t> distance = known_distance(start, end);
  return distance && *distance >= 0 ? min(ceil_div(size, by), ceil_div(Dim(*distance), by))
                                    : ceil_div(size, by);
}

// Data says where it starts and ends.
Value open_slice_one(NodeContext& c, Value x, int axis, Value start, Value end, std::int64_t step) {
  const Dim size = x.shape()[axis];
  step = checked_step(c, step, axis);
  const bool forward = step > 0;
  const std::int64_t by = forward ? step : -step;
  const Dim last = forward ? size : size - Dim(1);
  hone::Graph& g = x.graph();
  Value from = clamped_bound(start, size, forward ? 0 : -1, last),
        to = clamped_bound(end, size, forward ? 0 : -1, last);
  Value span = ops::maximum(forward ? to - from : from - to, integer(g, 0));
  Value count = ops::div(span + integer(g, by - 1), integer(g, by));
  const Dim n =
      c.measured(count, forward ? most_between(size, start, end, by) : ceil_div(size, by));
  const Dim first = c.measured(ops::maximum(from, integer(g, 0)), size);
  return slice_axis(x, axis, first, n, step);
}

// Data says the step, too: what is taken is found by its places.
Value open_step_one(NodeContext& c, Value x, int axis, Value start, Value end, Value step) {
  const Dim size = x.shape()[axis];
  hone::Graph& g = x.graph();
  step = cast_to(reshape_to(step, {}), DType::i64);
  Value zero = integer(g, 0), one = integer(g, 1);
  Value forward = ops::lt(zero, step);
  auto bound = [&](Value at) {
    return ops::select(forward, clamped_bound(at, size, 0, size),
                       clamped_bound(at, size, -1, size - Dim(1)));
  };
  Value from = bound(start), to = bound(end);
  Value span = ops::maximum(ops::select(forward, to - from, from - to), zero);
  // No axis is longer, and the largest negative number has no opposite.
  Value by = ops::select(forward, step, -ops::maximum(step, integer(g, -unbounded)));
  Value count = ops::div(span - one, ops::maximum(by, one)) + one;
  count = ops::select(ops::eq(span, zero), zero, count);
  count = ops::select(ops::eq(step, zero), integer(g, -1), count);
  const Dim n = c.measured(count, size);
  Value i = counted(g, DType::i64, n);
  return at_clamped(x, axis, broadcast_to(from, i.shape()) + i * broadcast_to(step, i.shape()));
}

// Bounds of as many first axes as `starts` can have elements; axes for which it has none are taken
// whole.
void fill_bounds(Value& starts, Value& ends) {
  const Dim n = starts.shape()[0];
  if (n.is_number() || n.high() != 1 || ends.rank() != 1) return;
  hone::Graph& g = starts.graph();
  const Value none = ops::lt(size_value(g, n, DType::i64), integer(g, 1));
  g.require_equal(n, ends.shape()[0],
                  cat("starts and ends have ", n, " and ", ends.shape()[0],
                      " elements, expected equal numbers"));
  const auto filled = [&](Value v, std::int64_t number) {
    const Value first = reshape_to(in_room(cast_to(v, DType::i64), {1}), {});
    return reshape_to(ops::select(none, integer(g, number), first), {1});
  };
  starts = filled(starts, 0);
  ends = filled(ends, std::numeric_limits<std::int64_t>::max());
}

// Bounds that data decides: axes must be known.
Values open_slice(NodeContext& c) {
  Value x = c.in(0);
  Value starts = flatten(c.in(1)), ends = flatten(c.in(2));
  if (!c.has(3) && !c.has(4)) fill_bounds(starts, ends);
  const std::optional<std::int64_t> n = starts.shape()[0].as_number();
  if (!n || ends.shape() != starts.shape()) c.depends_on_data(c.decides(1) ? 1 : 2);
  std::vector<std::int64_t> axes, steps(static_cast<std::size_t>(*n), 1);
  for (std::int64_t i = 0; i < *n; ++i) axes.push_back(i);
  if (c.has(3)) axes = c.numbers(3);
  Value open_steps = c.has(4) && c.decides(4) ? flatten(c.in(4)) : Value();
  if (c.has(4) && !open_steps) steps = c.numbers(4);
  if (axes.size() != static_cast<std::size_t>(*n) || steps.size() != axes.size() ||
      (open_steps && open_steps.shape() != starts.shape()))
    c.fail(cat("starts, axes and steps have ", *n, ", ", axes.size(), " and ", steps.size(),
               " elements, expected equal numbers"));
  c.axes(axes, x.rank());  // each once
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto k = static_cast<std::int64_t>(i);
    const int axis = c.axis(axes[i], x.rank());
    Value start = slice_axis(starts, 0, k, 1), end = slice_axis(ends, 0, k, 1);
    x = open_steps ? open_step_one(c, x, axis, start, end, slice_axis(open_steps, 0, k, 1))
                   : open_slice_one(c, x, axis, start, end, steps[i]);
  }
  return {x};
}

Values slice_import(NodeContext& c) {
  if (c.opset() >= 10 && (c.decides(1) || c.decides(2) || (c.has(4) && c.decides(4))))
    return open_slice(c);
  Value x = c.in(0);
  Bounds b = slice_bounds(c);
  c.axes(b.axes, x.rank());  // each once
  for (std::size_t i = 0; i < b.starts.size(); ++i)
    x = slice_one(c, x, c.axis(b.axes[i], x.rank()), b.starts[i], b.ends[i], b.steps[i]);
  return {x};
}

// What ONNX takes for an axis of size n: -n to n - 1.
void require_index(Value index, const Dim& n) { require_within(index, Dim(0) - n, n - 1, "index"); }

template <const Op& op>
Values gather_import(NodeContext& c) {
  Value x = c.in(0);
  std::int64_t axis = c.axis(c.integer("axis", 0), x.rank());
  require_index(c.in(1), x.shape()[static_cast<int>(axis)]);
  return {op(Values{x, c.in(1)}, {{"axis", axis}})};
}

// The last axis of `indices` lists one index for each axis of x from `first` on.
void require_places(Value indices, const Shape& x, std::int64_t first) {
  if (indices.rank() < 1 || !indices.shape()[-1].is_number()) return;  // the operation refuses it
  const std::int64_t count = indices.shape()[-1].number();
  for (std::int64_t k = 0; k < count && first + k < x.rank(); ++k)
    require_index(take_axis(indices, indices.rank() - 1, k), x[static_cast<int>(first + k)]);
}

Values gather_nd(NodeContext& c) {
  const std::int64_t batch = c.integer("batch_dims", 0);
  if (batch < 0 || batch >= c.in(0).rank())
    c.bad_attribute("batch_dims", batch, cat("0 to ", c.in(0).rank() - 1, " for ", c.in(0).type()));
  require_places(c.in(1), c.in(0).shape(), batch);
  return {ops::gather_nd(Values{c.in(0), c.in(1)}, {{"batch", batch}})};
}

std::string scatter_kind(NodeContext& c) {
  std::string_view how = c.text("reduction", "none");
  return how == "none" ? "set" : std::string(how);
}

Values scatter_elements(NodeContext& c) {
  Value x = c.in(0);
  std::int64_t axis = c.axis(c.integer("axis", 0), x.rank());
  require_index(c.in(1), x.shape()[static_cast<int>(axis)]);
  return {ops::scatter_elements(Values{x, c.in(1), c.in(2)},
                                {{"axis", axis}, {"kind", scatter_kind(c)}})};
}

Values scatter_nd(NodeContext& c) {
  require_places(c.in(1), c.in(0).shape(), 0);
  return {ops::scatter_nd(Values{c.in(0), c.in(1), c.in(2)}, {{"kind", scatter_kind(c)}})};
}

// Elements before and after each axis of x; negative ones are cut off.
struct Pads {
  Dims low, high;
  // Where data says how many: i64 scalars, else null.
  Values open_low, open_high;
};

std::vector<NodeContext::Element> pad_list(NodeContext& c) {
  if (c.opset() >= 11) return c.elements(1);
  auto list = c.integers(c.opset() < 2 ? "paddings" : "pads");
  if (!list) c.fail("'pads' is missing; it is required");
  std::vector<NodeContext::Element> out;
  for (std::int64_t n : *list) out.push_back({n, {}});
  return out;
}

Pads pads_of(NodeContext& c, int rank) {
  const std::vector<NodeContext::Element> list = pad_list(c);
  const auto n = static_cast<std::size_t>(rank);
  Pads out{Dims(n, 0), Dims(n, 0), Values(n), Values(n)};
  std::vector<std::int64_t> axes;
  if (c.has(3))
    axes = c.numbers(3);
  else
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  c.axes(axes, rank);  // each once
  if (list.size() != 2 * axes.size())
    c.fail(cat("'pads' has ", amount(list.size(), "element", "elements"), ", expected ",
               2 * axes.size(), ", two for each axis"));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    auto axis = static_cast<std::size_t>(c.axis(axes[i], rank));
    const NodeContext::Element &low = list[i], &high = list[i + axes.size()];
    if (low.known && high.known) {
      out.low[axis] = *low.known;
      out.high[axis] = *high.known;
      continue;
    }
    const auto value = [&](const NodeContext::Element& e) {
      return e.known ? size_value(c.graph(), *e.known, DType::i64) : e.open;
    };
    out.open_low[axis] = value(low);
    out.open_high[axis] = value(high);
  }
  return out;
}

// One axis with pads, or cuts, that data decides: each element of the result by its place in x.
Value openly_padded(NodeContext& c, Value x, int axis, Value low, Value high, const Dim& most_added,
                    std::string_view mode, Value number) {
  hone::Graph& g = c.graph();
  const Dim size = x.shape()[axis];
  Value zero = integer(g, 0), one = integer(g, 1);
  Value cut_low = ops::maximum(-low, zero), cut_high = ops::maximum(-high, zero);
  Value kept = size_value(g, size, DType::i64) - cut_low - cut_high;  // what is repeated around
  const Dim n =
      c.measured(kept + ops::maximum(low, zero) + ops::maximum(high, zero), size + most_added);
  Value i = counted(g, DType::i64, n);
  const auto all = [&](Value v) { return broadcast_to(v, i.shape()); };
  i = i - all(ops::maximum(low, zero));
  Value last = kept - one, at = i;
  if (mode == "wrap") at = ops::mod(i, all(ops::maximum(kept, one)));
  if (mode == "reflect") {
    Value twice = all(ops::maximum(last + last, one));
    at = ops::mod(i, twice);
    at = ops::minimum(at, twice - at);
  }
  at = ops::minimum(ops::maximum(at, all(zero)), all(last));
  Value y = at_clamped(x, axis, at + all(cut_low));
  if (mode != "constant") return y;
  Value inside = ops::bit_and(ops::le(all(zero), i), ops::le(i, all(last)));
  return where(along(inside, axis, y.rank()), y, number);
}

// Cuts what is negative; then no pad is.
Value without_negative(Value x, Pads& p) {
  for (int a = 0; a < x.rank(); ++a) {
    Dim &low = p.low[static_cast<std::size_t>(a)], &high = p.high[static_cast<std::size_t>(a)];
    Dim cut_low = max(Dim(0) - low, 0), cut_high = max(Dim(0) - high, 0);
    low = max(low, 0);
    high = max(high, 0);
    x = slice_axis(x, a, cut_low, x.shape()[a] - cut_low - cut_high);
  }
  return x;
}

// Around each end comes the other one.
Value wrapped(Value x, const Pads& p) {
  for (int a = 0; a < x.rank(); ++a) {
    const Dim &low = p.low[static_cast<std::size_t>(a)],
              &high = p.high[static_cast<std::size_t>(a)];
    if (low == Dim(0) && high == Dim(0)) continue;
    const Dim size = x.shape()[a], all = low + size + high;
    Value i = counted(x.graph(), DType::i64, all);
    auto number = [&](const Dim& d) {
      return broadcast_to(size_value(x.graph(), d, DType::i64), i.shape());
    };
    x = ops::gather(Values{x, ops::mod(i - number(low), number(size))},
                    {{"axis", std::int64_t{a}}});
  }
  return x;
}

Values pad_import(NodeContext& c) {
  Pads p = pads_of(c, c.in(0).rank());
  std::string_view mode = c.text("mode", "constant");
  double value = c.opset() < 11 ? c.real("value", 0) : 0;
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    c.unsupported(
        cat("attribute 'mode' is '", mode, "', expected constant, reflect, edge or wrap"));
  Value x = without_negative(c.in(0), p);
  // The number counts in one mode only, and may stand in all.
  Value number = c.has(2) ? reshape_to(c.in(2), {}) : scalar(c.graph(), value, x.dtype());
  const auto open = std::ranges::count_if(p.open_low, [](const Value& v) { return bool(v); });
  const Dim most_added = c.open_limit(static_cast<std::size_t>(open));
  for (int a = 0; a < x.rank(); ++a)
    if (const auto i = static_cast<std::size_t>(a); p.open_low[i])
      x = openly_padded(c, x, a, p.open_low[i], p.open_high[i], most_added, mode, number);
  if (mode == "reflect") return {ops::pad_reflect(x, {{"low", p.low}, {"high", p.high}})};
  if (mode == "edge") return {ops::pad_edge(x, {{"low", p.low}, {"high", p.high}})};
  if (mode == "wrap") return {wrapped(x, p)};
  return {pad_with(x, number, p.low, p.high)};
}

// Cut or filled with zeros on both sides; an odd element goes to the end.
Values center_crop_pad(NodeContext& c) {
  Value x = c.in(0);
  const Dims sizes = c.open_contents(1);
  std::vector<std::int64_t> axes;
  if (auto given = c.integers("axes"))
    axes = *given;
  else
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  if (axes.size() != sizes.size())
    c.fail(cat("input 1 ('shape') has ", amount(sizes.size(), "element", "elements"), ", expected ",
               axes.size(), ", one for each axis"));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const int axis = c.axis(axes[i], x.rank());
    const Dim size = x.shape()[axis], kept = min(size, sizes[i]);
    const Dim cut = size - kept, add = sizes[i] - kept;
    x = slice_axis(x, axis, floor_div(cut, 2), kept);
    Dims low(static_cast<std::size_t>(x.rank()), 0), high = low;
    low[static_cast<std::size_t>(axis)] = floor_div(add, 2);
    high[static_cast<std::size_t>(axis)] = add - floor_div(add, 2);
    x = pad_with(x, constant(c.graph(), Array::scalar_int(0, x.dtype())), low, high);
  }
  return {x};
}

// Before opset 6 one axis is repeated: operands are the number and the axis.
Values tile_import(NodeContext& c) {
  Value x = c.in(0);
  if (c.opset() >= 6) {
    const Dims repeats = c.open_contents(1);
    if (std::ssize(repeats) != x.rank())
      c.fail(cat("'repeats' has ", amount(repeats.size(), "element", "elements"), ", expected ",
                 x.rank(), ", one for each axis"));
    return {ops::tile(x, {{"count", repeats}})};
  }
  Dims count(static_cast<std::size_t>(x.rank()), 1);
  count[static_cast<std::size_t>(c.axis(c.number(2), x.rank()))] = c.size(1);
  return {ops::tile(x, {{"count", count}})};
}

// What the numbers are computed in.
DType range_dtype(NodeContext& c, DType dtype) {
  const std::int64_t stash = c.integer("stash_type", 1);
  if (dtype != DType::f16 && dtype != DType::bf16) return dtype;
  return stash == 0 ? dtype : dtype_of(static_cast<std::int32_t>(stash)).value_or(DType::f32);
}

Values real_range(NodeContext& c) {
  const double start = c.real_number(0), end = c.real_number(1), step = c.real_number(2);
  const double n = std::ceil((end - start) / step);
  if (std::isnan(n) || step == 0 || n >= 0x1p53)
    c.fail(cat("start, limit and delta are ", start, ", ", end, " and ", step,
               ", expected finite numbers, a nonzero delta and fewer than 2^53 elements"));
  Shape shape{Dim(static_cast<std::int64_t>(std::max(n, 0.0)))};
  const DType dtype = c.in(0).dtype(), inner = range_dtype(c, dtype);
  Value counted = iota_value(c.graph(), inner, shape, 0);
  return {cast_to(counted * step + start, dtype)};
}

// How many numbers there are is found in the run; -1, which is refused, for a step of 0 or where
// one of the three is NaN.
Values open_range(NodeContext& c) {
  hone::Graph& g = c.graph();
  const DType dtype = c.in(0).dtype();
  const DType wide = is_float(dtype) ? DType::f64 : DType::i64;
  auto number = [&](std::size_t i) { return cast_to(reshape_to(c.in(i), {}), wide); };
  Value start = number(0), step = number(2), span = number(1) - start;
  Value zero = cast_to(integer(g, 0), wide);
  Value count =
      is_float(dtype) ? ops::ceil(span / step) : ops::div(span + step - ops::sign(step), step);
  Value no_range = ops::eq(step, zero);
  if (is_float(dtype)) no_range = ops::bit_or(no_range, ops::ne(count, count));
  count = ops::select(no_range, integer(g, -1), cast_to(ops::maximum(count, zero), DType::i64));
  constexpr std::int64_t most = 1 << 20;
  if (const std::optional<Array> known = known_array(count); known && known->integer(0) < 0)
    c.fail("delta is 0 or an input is NaN, expected numbers and a nonzero delta");
  require_within(count, 0, most, "the number of elements (-1: delta is 0 or an input is NaN)");
  const Shape shape{c.measured(ops::maximum(count, integer(g, 0)), most)};
  const DType inner = range_dtype(c, dtype);
  auto given = [&](std::size_t i) {
    return broadcast_to(cast_to(reshape_to(c.in(i), {}), inner), shape);
  };
  return {cast_to(iota_value(g, inner, shape, 0) * given(2) + given(0), dtype)};
}

Values range_import(NodeContext& c) {
  if (c.opset() >= 27) c.ignore("stash_type");  // means something for narrow floats only
  if (c.decides(0) || c.decides(1) || c.decides(2)) return open_range(c);
  if (is_float(c.in(0).dtype())) return real_range(c);
  Value start = reshape_to(c.in(0), {});
  Dim from = c.size(0), to = c.size(1);
  std::int64_t step = c.number(2);
  if (step == 0 || step == std::numeric_limits<std::int64_t>::min())
    c.fail(cat("input 2 ('delta') is ", step, ", expected a nonzero integer above -2^63"));
  Dim span = step > 0 ? to - from : from - to;
  Shape shape{ceil_div(max(span, 0), step > 0 ? step : -step)};
  Value counted = iota_value(c.graph(), start.dtype(), shape, 0);
  return {counted * integer_like(counted, step) + broadcast_to(start, shape)};
}

// [..., m, n]: only what lies on or above (or below) diagonal k stays.
Values triangle(NodeContext& c) {
  Value x = c.in(0);
  if (x.rank() < 2) c.bad_input(0, "input", "at least two axes");
  bool upper = c.flag("upper", true);
  Shape matrix{x.shape()[-2], x.shape()[-1]};
  // Diagonals beyond the corners are all alike; sums with them would not fit in 64 bits.
  Value k = integer(c.graph(), 0);
  if (c.has(1)) {
    auto number = [&](const Dim& d) { return size_value(c.graph(), d, DType::i64); };
    k = cast_to(reshape_to(c.in(1), {}), DType::i64);
    k = ops::minimum(ops::maximum(k, number(Dim(0) - matrix[0])), number(matrix[1]));
  }
  Value row = iota_value(c.graph(), DType::i64, matrix, 0);
  Value column = iota_value(c.graph(), DType::i64, matrix, 1);
  Value limit = row + broadcast_to(k, matrix);
  Value kept = upper ? ops::le(limit, column) : ops::le(column, limit);
  Value zero = broadcast_to(constant(c.graph(), Array::scalar_int(0, x.dtype())), x.shape());
  return {ops::select(Values{broadcast_to(kept, x.shape()), x, zero})};
}

// A size that is given as a real number.
Dim whole_number(NodeContext& c, std::size_t input) {
  const double number = c.real_number(input);
  if (!(number >= 0 && number < 0x1p53))
    c.fail(cat("input ", input, " is ", number, ", expected 0 or more and less than 2^53"));
  return static_cast<std::int64_t>(number);
}

Values one_hot_import(NodeContext& c) {
  Value indices = c.in(0), values = c.in(2);
  if (values.rank() != 1) c.bad_input(2, "values", "two elements, [off, on]");
  std::int64_t axis = c.axis(c.integer("axis", -1), indices.rank() + 1);
  Value off = take_axis(values, 0, 0), on = take_axis(values, 0, 1);
  if (is_float(indices.dtype())) indices = cast_to(indices, DType::i64);
  const bool is_real = is_float(c.in(1).dtype());
  const Dim count = c.decides(1) ? c.measured(cast_to(c.in(1), DType::i64), c.open_limit())
                    : is_real    ? whole_number(c, 1)
                                 : c.size(1);
  return {ops::one_hot(Values{indices, on, off}, {{"axis", axis}, {"count", Dims{count}}})};
}

// Whether a block's place comes before the channel, in the channels of blocks.
bool is_depth_first(NodeContext& c) {
  std::string_view mode = c.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") c.bad_attribute("mode", mode, "DCR or CRD");
  return mode == "DCR";
}

// Blocks of channels against blocks of pixels.
Values depth_to_space(NodeContext& c) {
  Value x = c.in(0);
  const std::int64_t b = c.integer("blocksize", 0);
  const bool depth_first = is_depth_first(c);
  if (b < 1 || x.rank() != 4)
    c.fail(cat("blocksize is ", b, " and the input ", x.type(),
               ", expected a positive integer and 4 axes"));
  const Shape& s = x.shape();
  Dim channels = floor_div(s[1], checked_mul(b, b));
  Value split = reshape_to(x, depth_first ? Dims{s[0], b, b, channels, s[2], s[3]}
                                          : Dims{s[0], channels, b, b, s[2], s[3]});
  Value moved = transpose_by(split, depth_first ? Axes{0, 3, 4, 1, 5, 2} : Axes{0, 1, 4, 2, 5, 3});
  return {reshape_to(moved, {s[0], channels, s[2] * Dim(b), s[3] * Dim(b)})};
}

Values space_to_depth(NodeContext& c) {
  Value x = c.in(0);
  const std::int64_t b = c.integer("blocksize", 0);
  if (b < 1 || x.rank() != 4)
    c.fail(cat("blocksize is ", b, " and the input ", x.type(),
               ", expected a positive integer and 4 axes"));
  const Shape& s = x.shape();
  Dim h = floor_div(s[2], b), w = floor_div(s[3], b);
  Value moved = transpose_by(reshape_to(x, {s[0], s[1], h, b, w, b}),
                             is_depth_first(c) ? Axes{0, 3, 5, 1, 2, 4} : Axes{0, 1, 3, 5, 2, 4});
  return {reshape_to(moved, {s[0], s[1] * Dim(b * b), h, w})};
}

constexpr ImportEntry shape_table[] = {
    {"Identity", identity},
    {"Constant", constant_import},
    {"ConstantOfShape", constant_of_shape, 9},
    {"Shape", shape_import},
    {"Size", size_import},
    {"Reshape", reshape_import},
    {"Flatten", flatten_import},
    {"Squeeze", squeeze_import},
    {"Unsqueeze", unsqueeze_import},
    {"Expand", expand_import, 8},
    {"Transpose", transpose_import},
    {"Concat", concat_import},
    {"Split", split_import},
    {"Slice", slice_import},
    {"Gather", gather_import<ops::gather>},
    {"Pad", pad_import},
    {"Tile", tile_import},
    {"CenterCropPad", center_crop_pad, 18},
    {"Range", range_import, 11},
    {"GatherElements", gather_import<ops::gather_elements>, 11},
    {"GatherND", gather_nd, 11},
    {"ScatterElements", scatter_elements, 11},
    {"Scatter", scatter_elements, 9, 10},
    {"ScatterND", scatter_nd, 11},
    {"Trilu", triangle, 14},
    {"OneHot", one_hot_import, 9},
    {"DepthToSpace", depth_to_space},
    {"SpaceToDepth", space_to_depth},
};

}  // namespace

std::span<const ImportEntry> shape_imports() { return shape_table; }

}  // namespace hone::onnx
