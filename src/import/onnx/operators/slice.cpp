// Slice, with known, size-dependent or data-dependent bounds and steps.
#include <algorithm>
#include <limits>

#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/node/known.h"
#include "import/onnx/node/open.h"
#include "import/onnx/operators/list.h"

namespace hone::onnx {

namespace {

constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

// 1 where at < 0, else 0.
Dim is_negative(const Dim& at) { return Dim(1) - min(max(at + Dim(1), 0), 1); }

// A bound of Slice counted from the front, before it is clamped. Sums that would overflow 64 bits
// are beyond every size anyway.
Dim from_front(const Dim& at, const Dim& size) {
  if (at.is_number() && at.number() < -(unbounded / 2)) return -(unbounded / 2);
  if (at.is_number() && at.number() > unbounded / 2) return unbounded / 2;
  if (at.low() >= 0) return at;
  if (at.high() < 0) return at + size;
  return at + size * is_negative(at);
}

Dim clamped(const Dim& at, const Dim& low, const Dim& high) { return min(max(at, low), high); }

// No axis is longer than `most`, so larger steps are equivalent; it leaves room for sums.
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
  // Backwards the end is before the last element taken: -1 is before the first of the axis. A start
  // before the axis is its first element.
  Dim last = size - Dim(1);
  from = clamped(from, 0, last);
  to = clamped(to, -1, last);
  return slice_axis(x, axis, from, ceil_div(max(from - to, 0), -step), step);
}

struct Bounds {
  Dims starts, ends;
  std::vector<std::int64_t> axes, steps;
};

// Attributes before opset 10, operands from then on.
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

// A data-dependent bound of Slice, counted from the front and clamped.
Value clamped_bound(Value at, const Dim& size, std::int64_t low, const Dim& high) {
  hone::Graph& g = at.graph();
  at = cast_to(reshape_to(at, {}), DType::i64);
  Value length = size_value(g, size, DType::i64), zero = integer(g, 0);
  Value front = ops::select(ops::lt(at, zero), at + length, at);
  return ops::minimum(ops::maximum(front, integer(g, low)), size_value(g, high, DType::i64));
}

// end - start, if the graph shows that it is a number: x[i:i + 1].
std::optional<std::int64_t> known_distance(Value start, Value end) {
  if (start == end) return 0;
  if (!end.is(ops::add)) return std::nullopt;
  for (const std::size_t i : {0u, 1u})
    if (end.operand(i) == start)
      if (std::optional<Array> a = known_array(end.operand(1 - i)); a && a->count() == 1)
        return a->integer(0);
  return std::nullopt;
}

// The maximum number of elements.
Dim most_between(const Dim& size, Value start, Value end, std::int64_t by) {
  const std::optional<std::int64_t> distance = known_distance(start, end);
  return distance && *distance >= 0 ? min(ceil_div(size, by), ceil_div(Dim(*distance), by))
                                    : ceil_div(size, by);
}

// The start and end are data-dependent.
Value open_slice_one(NodeContext& c, Value x, int axis, Value start, Value end, std::int64_t step) {
  const Dim size = x.shape()[axis];
  step = checked_step(c, step, axis);
  const bool forward = step > 0;
  const std::int64_t by = forward ? step : -step;
  const Dim last = forward ? size : size - Dim(1);
  hone::Graph& g = x.graph();
  Value from = clamped_bound(start, size, 0, last),
        to = clamped_bound(end, size, forward ? 0 : -1, last);
  Value span = ops::maximum(forward ? to - from : from - to, integer(g, 0));
  Value count = ops::div(span + integer(g, by - 1), integer(g, by));
  const Dim n =
      c.measured(count, forward ? most_between(size, start, end, by) : ceil_div(size, by));
  const Dim first = c.measured(ops::maximum(from, integer(g, 0)), size);
  return slice_axis(x, axis, first, n, step);
}

// The step is data-dependent too: elements are selected by position.
Value open_step_one(NodeContext& c, Value x, int axis, Value start, Value end, Value step) {
  const Dim size = x.shape()[axis];
  hone::Graph& g = x.graph();
  step = cast_to(reshape_to(step, {}), DType::i64);
  Value zero = integer(g, 0), one = integer(g, 1);
  Value forward = ops::lt(zero, step);
  const auto bound = [&](Value at, std::int64_t backwards_from) {
    return ops::select(forward, clamped_bound(at, size, 0, size),
                       clamped_bound(at, size, backwards_from, size - Dim(1)));
  };
  Value from = bound(start, 0), to = bound(end, -1);
  Value span = ops::maximum(ops::select(forward, to - from, from - to), zero);
  // No axis is longer, and the most negative number has no opposite.
  Value by = ops::select(forward, step, -ops::maximum(step, integer(g, -unbounded)));
  Value count = ops::div(span - one, ops::maximum(by, one)) + one;
  count = ops::select(ops::eq(span, zero), zero, count);
  count = ops::select(ops::eq(step, zero), integer(g, -1), count);
  const Dim n = c.measured(count, size);
  Value i = counted(g, DType::i64, n);
  return at_clamped(x, axis, broadcast_to(from, i.shape()) + i * broadcast_to(step, i.shape()));
}

// Bounds for the maximum number of first axes that `starts` may cover; axes that it does not cover
// at run time are taken whole.
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

// Data-dependent bounds of known axes.
Values open_slice(NodeContext& c) {
  Value x = c.in(0);
  Value starts = flatten(c.in(1)), ends = flatten(c.in(2));
  if (!c.has(3) && !c.has(4)) fill_bounds(starts, ends);
  const std::optional<std::int64_t> n = starts.shape()[0].as_number();
  if (!n || ends.shape() != starts.shape())
    c.fail(cat("starts and ends are ", starts.type(), " and ", ends.type(),
               ", expected equal numbers of elements"));
  std::vector<std::int64_t> axes, steps(static_cast<std::size_t>(*n), 1);
  for (std::int64_t i = 0; i < *n; ++i) axes.push_back(i);
  if (c.has(3)) axes = c.numbers(3);
  Value open_steps = c.has(4) && c.decides(4) ? flatten(c.in(4)) : Value();
  if (c.has(4) && !open_steps) steps = c.numbers(4);
  if (axes.size() != static_cast<std::size_t>(*n) || steps.size() != axes.size() ||
      (open_steps && open_steps.shape() != starts.shape()))
    c.fail(cat("starts, axes and steps have ", *n, ", ", axes.size(), " and ", steps.size(),
               " elements, expected equal numbers"));
  c.axes(axes, x.rank());  // without duplicates
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto k = static_cast<std::int64_t>(i);
    const int axis = c.axis(axes[i], x.rank());
    Value start = slice_axis(starts, 0, k, 1), end = slice_axis(ends, 0, k, 1);
    x = open_steps ? open_step_one(c, x, axis, start, end, slice_axis(open_steps, 0, k, 1))
                   : open_slice_one(c, x, axis, start, end, steps[i]);
  }
  return {x};
}

// Whether the axes that have bounds, or their number, are data-dependent.
bool are_axes_open(NodeContext& c) {
  if (c.has(3) && c.decides(3)) return true;
  const auto count = [&](std::size_t i) { return c.in(i).shape().count(); };
  if (!c.has(3) && !c.has(4) && count(1).high() == 1) return false;  // fill_bounds
  for (const std::size_t i : {1U, 2U, 4U})
    if (c.has(i) && !count(i).is_number()) return true;
  return false;
}

// Slices every axis: the named ones by their bounds, the others whole.
Values slice_of_named(NodeContext& c) {
  Value x = c.in(0), axes = c.has(3) ? cast_to(flatten(c.in(3)), DType::i64)
                                     : counted(c.graph(), DType::i64, c.in(1).shape().count());
  const int rank = x.rank();
  const Value named = named_axes(axes, rank);
  const auto by_name = [&](std::size_t input, std::int64_t otherwise) {
    const Value list = flatten(c.in(input));
    const Dim here = list.shape()[0], count = axes.shape()[0];
    const std::string why = cat(c.input_text(input), " has ", here, " elements for ", count,
                                " axes, expected equal numbers");
    if (prove_equal(here, count) == false) c.fail(why);
    c.graph().require_equal(here, count, why);
    return by_axis(named, reshape_to(list, {count}), otherwise);
  };
  const Value starts = by_name(1, 0), ends = by_name(2, unbounded);
  const bool steps_by_one =
      !c.has(4) || (c.knows(4) && c.contents(4) == Dims(c.contents(4).size(), 1));
  const Value steps = c.has(4) ? by_name(4, 1) : Value();
  for (int axis = 0; axis < rank; ++axis) {
    const Value start = slice_axis(starts, 0, axis, 1), end = slice_axis(ends, 0, axis, 1);
    x = steps_by_one ? open_slice_one(c, x, axis, start, end, 1)
                     : open_step_one(c, x, axis, start, end, slice_axis(steps, 0, axis, 1));
  }
  return {x};
}

Values slice_import(NodeContext& c) {
  if (c.opset() >= 10 && are_axes_open(c)) return slice_of_named(c);
  if (c.opset() >= 10 && (c.decides(1) || c.decides(2) || (c.has(4) && c.decides(4))))
    return open_slice(c);
  Value x = c.in(0);
  Bounds b = slice_bounds(c);
  c.axes(b.axes, x.rank());  // without duplicates
  for (std::size_t i = 0; i < b.starts.size(); ++i)
    x = slice_one(c, x, c.axis(b.axes[i], x.rank()), b.starts[i], b.ends[i], b.steps[i]);
  return {x};
}

constexpr ImportEntry slice_table[] = {
    {"Slice", slice_import},
};

}  // namespace

std::span<const ImportEntry> slice_imports() { return slice_table; }

}  // namespace hone::onnx
