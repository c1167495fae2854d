// Functions that move elements.
#include <algorithm>

#include "import/common/build.h"
#include "ops/require.h"
#include "tensor/functions.h"
#include "tensor/trace.h"

namespace hone {

namespace {

Axes axes_named(const AxisList& list, int rank, std::string_view who) {
  Axes out;
  for (int a : list.axes()) out.push_back(normal_axis(a, rank, who));
  return out;
}

// With the open size of a reshape.
Dims settled_sizes(const Value& x, Dims sizes) {
  Dim rest = 1;
  Dim* open = nullptr;
  for (Dim& d : sizes) {
    if (d == Dim(-1) && open)
      throw UserError("reshape: two sizes of ", Shape(sizes), " are -1, expected at most one");
    if (d == Dim(-1))
      open = &d;
    else
      rest = rest * d;
  }
  if (!open) return sizes;
  const Dim count = x.shape().count();
  const std::optional<Dim> quotient = rest == Dim(0) ? std::nullopt : exact_quotient(count, rest);
  if (!quotient)
    throw UserError("reshape: ", x.type(), " to ", Shape(sizes), ": the size for -1 is ", count,
                    " / ", rest, ", expected a whole number");
  *open = *quotient;
  return sizes;
}

// A place along an axis of n elements, moved inside.
Dim place_in(std::int64_t at, const Dim& n) {
  return at < 0 ? max(n + Dim(at), 0) : min(Dim(at), n);
}

// A start for each axis: that of one, and 0.
Value starts_of(Trace& t, int rank, int axis, const Tensor& start, std::string_view who) {
  const Value at = t.value(start);
  if (at.rank() != 0 || !is_integer(at.dtype()))
    throw UserError(who, ": the start is ", at.type(), ", expected an integer scalar");
  Values all(static_cast<std::size_t>(rank), build::integer_list(t.graph(), {0}));
  all[static_cast<std::size_t>(axis)] = reshape_to(cast_to(at, DType::i64), {1});
  return concat_values(all, 0);
}

}  // namespace

Tensor reshape(const Tensor& x, const Dims& sizes, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    return reshape_to(v, settled_sizes(v, sizes));
  });
}

Tensor flatten(const Tensor& x, int first, int last, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    if (v.rank() == 0) return reshape_to(v, {1});
    const int from = normal_axis(first, v.rank(), "flatten"),
              to = normal_axis(last, v.rank(), "flatten");
    if (to < from)
      throw UserError("flatten: the axes are ", first, " to ", last, " of ", v.type(),
                      ", expected the first before the last");
    Dims sizes;
    Dim joined = 1;
    for (int i = 0; i < v.rank(); ++i) {
      if (i >= from && i <= to) joined = joined * v.shape()[i];
      if (i == to)
        sizes.push_back(joined);
      else if (i < from || i > to)
        sizes.push_back(v.shape()[i]);
    }
    return reshape_to(v, sizes);
  });
}

Tensor transpose(const Tensor& x, int a, int b, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    Axes order = all_axes(v.rank());
    std::swap(order[static_cast<std::size_t>(normal_axis(a, v.rank(), "transpose"))],
              order[static_cast<std::size_t>(normal_axis(b, v.rank(), "transpose"))]);
    return transpose_by(v, order);
  });
}

Tensor permute(const Tensor& x, const std::vector<int>& order, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    Axes all, sorted;
    for (int a : order) all.push_back(normal_axis(a, v.rank(), "permute"));
    std::ranges::sort(sorted = all);
    if (sorted != all_axes(v.rank()))
      throw UserError("permute: the order is ", Shape(dims_of_axes(order)), " for ", v.type(),
                      ", expected each axis once");
    return transpose_by(v, all);
  });
}

Tensor squeeze(const Tensor& x, const AxisList& axes, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    return squeeze(v, axes_named(axes, v.rank(), "squeeze"));
  });
}
Tensor unsqueeze(const Tensor& x, const AxisList& axes, Where at) {
  return recorded(at, [&](Trace& t) { return unsqueeze(t.value(x), axes.axes()); });
}

Tensor broadcast_to(const Tensor& x, const Dims& sizes, Where at) {
  return recorded(at, [&](Trace& t) { return broadcast_to(t.value(x), Shape(sizes)); });
}

Tensor concat(const Tensors& parts, int axis, Where at) {
  return recorded(at, [&](Trace& t) { return concat_values(t.values(parts), axis); });
}
Tensor stack(const Tensors& parts, int axis, Where at) {
  return recorded(at, [&](Trace& t) {
    Values all;
    for (const Value& v : t.values(parts)) all.push_back(unsqueeze(v, {axis}));
    return concat_values(all, axis);
  });
}

Tensors split(const Tensor& x, const std::vector<Dim>& sizes, int axis, Where at) {
  return located(at, [&] {
    Trace& t = Trace::current();
    return t.tensors(split_axis(t.value(x), axis, sizes));
  });
}
Tensors chunk(const Tensor& x, int count, int axis, Where at) {
  return located(at, [&] {
    const Dim n = x.size(axis);
    const std::optional<Dim> each = count > 0 ? exact_quotient(n, count) : std::nullopt;
    if (!each)
      throw UserError("chunk: ", count, " parts of axis ", axis, " of ", x.type(),
                      ", expected a number that divides ", n);
    return split(x, std::vector<Dim>(static_cast<std::size_t>(count), *each), axis, at);
  });
}

Tensor slice(const Tensor& x, int axis, Range range, Where at) {
  return recorded(at, [&](Trace& t) {
    if (range.step < 1)
      throw UserError("slice: the step is ", range.step, ", expected at least 1; see flip()");
    const Value v = t.value(x);
    const Dim n = v.shape()[normal_axis(axis, v.rank(), "slice")];
    const Dim start = place_in(range.start, n),
              end = range.end == Range::to_end ? n : place_in(range.end, n);
    return slice_axis(v, axis, start, ceil_div(max(end - start, 0), range.step), range.step);
  });
}
Tensor narrow(const Tensor& x, int axis, const Dim& start, const Dim& size, Where at) {
  return recorded(at, [&](Trace& t) { return slice_axis(t.value(x), axis, start, size); });
}
Tensor dynamic_slice(const Tensor& x, int axis, const Tensor& start, const Dim& size, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    const int k = normal_axis(axis, v.rank(), "dynamic_slice");
    Dims sizes = v.shape().dims;
    sizes[static_cast<std::size_t>(k)] = size;
    return ops::dynamic_slice(Values{v, starts_of(t, v.rank(), k, start, "dynamic_slice")},
                              {{"sizes", sizes}});
  });
}
Tensor dynamic_update(const Tensor& x, const Tensor& part, int axis, const Tensor& start,
                      Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    const int k = normal_axis(axis, v.rank(), "dynamic_update");
    return ops::dynamic_update(
        Values{v, t.value(part), starts_of(t, v.rank(), k, start, "dynamic_update")});
  });
}
Tensor select(const Tensor& x, int axis, std::int64_t index, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    const int k = normal_axis(axis, v.rank(), "select");
    const Dim n = v.shape()[k], place = index < 0 ? n + Dim(index) : Dim(index);
    if (prove_less(place, n) != true || place.low() < 0)
      throw UserError("select: index ", index, " of axis ", axis, " of ", v.type(),
                      ", expected one that is inside for every size");
    return take_axis(v, k, place);
  });
}
Tensor flip(const Tensor& x, const AxisList& axes, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    return reverse_axes(v, axes.is_all() ? all_axes(v.rank()) : axes.axes());
  });
}
Tensor pad(const Tensor& x, const std::vector<std::int64_t>& low,
           const std::vector<std::int64_t>& high, const Operand& number) {
  return recorded(number.at, [&](Trace& t) {
    const Value v = t.value(x);
    if (std::ssize(low) != v.rank() || std::ssize(high) != v.rank())
      throw UserError("pad: ", low.size(), " and ", high.size(), " numbers for ", v.type(),
                      ", expected one for each axis");
    return pad_with(v, value_of(t, number, v.dtype(), "pad"), dims_of(low), dims_of(high));
  });
}

Tensor take(const Tensor& x, const Tensor& index, int axis, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x), places = t.value(index);
    const int k = normal_axis(axis, v.rank(), "take");
    require_within(places, 0, v.shape()[k] - Dim(1), "take: an index", at);
    return ops::gather(Values{v, places}, {{"axis", std::int64_t{k}}});
  });
}
Tensor gather(const Tensor& x, int axis, const Tensor& index, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x), places = t.value(index);
    const int k = normal_axis(axis, v.rank(), "gather");
    if (places.rank() != v.rank())
      throw UserError("gather: the index is ", places.type(), " for ", v.type(),
                      ", expected equal ranks; see take()");
    require_within(places, 0, v.shape()[k] - Dim(1), "gather: an index", at);
    return build::take_along(v, places, k);
  });
}
Tensor scatter(const Tensor& x, int axis, const Tensor& index, const Tensor& updates, Scatter how,
               Where at) {
  static constexpr const char* kinds[] = {"add", "set", "max", "min", "mul"};
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x), places = t.value(index);
    const int k = normal_axis(axis, v.rank(), "scatter");
    require_within(places, 0, v.shape()[k] - Dim(1), "scatter: an index", at);
    return ops::scatter(
        Values{v, places, t.value(updates)},
        {{"axis", std::int64_t{k}}, {"kind", std::string(kinds[static_cast<int>(how)])}});
  });
}
Tensor one_hot(const Tensor& index, std::int64_t count, DType dtype, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value places = t.value(index);
    return ops::one_hot(Values{places, scalar(t.graph(), 1, dtype), scalar(t.graph(), 0, dtype)},
                        {{"axis", std::int64_t{places.rank()}}, {"count", Dims{count}}});
  });
}

}  // namespace hone
