#include "import/onnx/node/open.h"

#include <algorithm>
#include <limits>

#include "import/common/build.h"
#include "ir/measured.h"
#include "ops/require.h"

namespace hone::onnx {

Dim room_of(const hone::Graph& graph, const Dim& d) { return largest(d, measured_sizes(graph)); }

Value in_room(Value v, const Dims& room) {
  Dims low(room.size(), 0), high;
  for (std::size_t i = 0; i < room.size(); ++i) high.push_back(room[i] - v.shape().dims[i]);
  Value zero = constant(v.graph(), Array::zeros(v.dtype(), {}));
  return reshape_to(pad_with(v, zero, low, high), room);
}

Value from_room(NodeContext& c, Value v, Value sizes, const std::vector<bool>& open) {
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (!open[i]) continue;
    const int axis = static_cast<int>(i);
    v = slice_axis(v, axis, 0, c.measured(slice_axis(sizes, 0, axis, 1), v.shape()[axis]));
  }
  return v;
}

Dim at_least(NodeContext& c, const Dim& d, std::int64_t low, std::string_view what) {
  const Dim least = max(d, low);
  c.graph().require_equal(least, d, cat(what, " is ", d, ", expected ", low, " or more"));
  return least;
}

Value option_at(NodeContext& c, Value number, const Values& options) {
  hone::Graph& g = c.graph();
  const auto count = static_cast<std::int64_t>(options.size());
  if (options.empty()) c.fail("the sequence is empty, expected at least one element");
  const Type& first = options[0].type();
  Dims room = first.shape.dims;
  std::vector<bool> open(room.size(), false);
  for (const Value& v : options) {
    if (v.dtype() != first.dtype || v.rank() != first.rank())
      c.unsupported(
          cat("data chooses between ", first, " and ", v.type(), ", expected one dtype and rank"));
    for (std::size_t i = 0; i < room.size(); ++i) {
      if (v.shape().dims[i] == first.shape.dims[i]) continue;
      open[i] = true;
      room[i] = max(room[i], v.shape().dims[i]);
    }
  }
  number = cast_to(reshape_to(number, {}), DType::i64);
  require_within(number, 0, count - 1, "a position");
  const bool is_open = std::ranges::count(open, true) > 0;
  const auto room_for = [&](Value v) { return is_open ? in_room(v, room) : v; };
  const auto sizes_of = [&](Value v) {
    return dims_value(g, v.shape().dims, DType::i64, {v.rank()});
  };
  Value out = room_for(options[0]), sizes = sizes_of(options[0]);
  for (std::int64_t i = 1; i < count; ++i) {
    const Value& v = options[static_cast<std::size_t>(i)];
    Value here = ops::eq(number, integer(g, i));
    out = ops::select(Values{broadcast_to(here, out.shape()), room_for(v), out});
    sizes = where(here, sizes_of(v), sizes);
  }
  return is_open ? from_room(c, out, sizes, open) : out;
}

namespace {

// All subsets of the axes below `rank`, in order: those with `count` axes, or of any size.
std::vector<Axes> sets_of(int rank, std::optional<std::int64_t> count) {
  std::vector<Axes> out;
  for (unsigned bits = 0; bits < 1u << rank; ++bits) {
    Axes set;
    for (int i = 0; i < rank; ++i)
      if (bits >> i & 1) set.push_back(i);
    if (!count || std::ssize(set) == *count) out.push_back(set);
  }
  return out;
}

// The set of run-time axes as a sum of powers of two.
Value code_of_set(Value axes, int rank) {
  Value times_named =
      reduce_axes(ops::reduce_sum, cast_to(named_axes(axes, rank), DType::i64), {0});
  Value bits = ops::shift_left(times_named, counted(axes.graph(), DType::i64, rank));
  return reduce_axes(ops::reduce_sum, bits, {0});
}

}  // namespace

Value named_axes(Value axes, int rank) {
  require_within(axes, -rank, rank - 1, "an axis");
  Value front = ops::mod(axes, integer_like(axes, rank));
  Value all = counted(axes.graph(), DType::i64, rank);
  Value is_named = joined(ops::eq, unsqueeze(front, {1}), unsqueeze(all, {0}));
  Value times_named = reduce_axes(ops::reduce_sum, cast_to(is_named, DType::i64), {0});
  require_within(times_named, 0, 1, "how often one axis is named");
  return is_named;
}

Value by_axis(Value named, Value list, std::int64_t otherwise) {
  hone::Graph& g = named.graph();
  const Value own = where(named, unsqueeze(cast_to(list, DType::i64), {1}), integer(g, 0)),
              found = reduce_axes(ops::reduce_sum, own, {0});
  if (otherwise == 0) return found;
  return where(reduce_axes(ops::reduce_or, named, {0}), found, integer(g, otherwise));
}

Dims part_sizes(NodeContext& c, std::size_t input, std::size_t count, const Dim& size) {
  if (!c.decides(input)) return c.contents(input);
  Dims out = c.open_contents(input, Dims(count, size));
  Dim sum = 0;
  for (const Dim& d : out) sum = sum + d;
  c.graph().add_check({sum, size,
                       cat(c.op(), ": the sizes of the parts add up to ", sum, ", expected ", size,
                           ", the size of the axis")});
  return out;
}

namespace {

// The results for each accepted set of axes.
struct MadeOfAxes {
  MadeOfAxes(int rank, std::optional<std::int64_t> count,
             const std::function<Value(const Axes&)>& build)
      : number_of(std::size_t{1} << rank, -1) {
    for (const Axes& set : sets_of(rank, count)) {
      try {
        options.push_back(build(set));
      } catch (const UserError& e) {
        if (refused.empty()) refused = e.what();
        continue;
      }
      std::size_t at = 0;
      for (int a : set) at += std::size_t{1} << a;
      number_of[at] = std::ssize(options) - 1;
    }
  }

  bool have_one_rank() const {
    return std::ranges::all_of(options,
                               [&](const Value& v) { return v.rank() == options[0].rank(); });
  }

  Values options;
  std::string refused;                  // why the first rejected set was rejected
  std::vector<std::int64_t> number_of;  // by code_of_set; -1: rejected
};

}  // namespace

Value over_axes(NodeContext& c, std::size_t input, int rank,
                const std::function<Value(const Axes&)>& build) {
  constexpr int most_rank = 6;
  if (!c.decides(input)) return build(c.axes(c.numbers(input), rank));
  Value axes = cast_to(flatten(c.in(input)), DType::i64);
  const auto count = [&] { return axes.shape()[0].as_number(); };
  if (rank < 1 || rank > most_rank || (count() && *count() > rank)) c.depends_on_data(input);
  MadeOfAxes made(rank, count(), build);
  if (!made.have_one_rank()) {
    axes = c.list_of_variant(axes, rank, "axes");
    made = MadeOfAxes(rank, count(), build);
  }
  if (made.options.empty()) c.fail(made.refused);
  Value number =
      ops::gather(Values{integer_list(c.graph(), made.number_of), code_of_set(axes, rank)},
                  {{"axis", std::int64_t{0}}});
  if (!made.refused.empty())
    require_within(number, 0, std::ssize(made.options) - 1,
                   cat("the choice of ", c.input_text(input), " (-1: ", made.refused, ")"));
  return option_at(c, number, made.options);
}

Value at_clamped(Value x, int axis, Value places) {
  hone::Graph& g = x.graph();
  Value last = size_value(g, max(x.shape()[axis] - Dim(1), 0), DType::i64);
  places = ops::minimum(ops::maximum(places, integer_like(places, 0)),
                        broadcast_to(last, places.shape()));
  return ops::gather(Values{x, places}, {{"axis", std::int64_t{axis}}});
}

}  // namespace hone::onnx
