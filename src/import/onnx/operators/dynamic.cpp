#include "import/onnx/operators/dynamic.h"

#include "base/amount.h"
#include "import/onnx/node/context.h"
#include "import/onnx/operators/list.h"
#include "ops/host.h"

namespace hone::onnx {

// An update at the end of the axis is out of range and is dropped.
Chosen chosen(Value condition) {
  const Dim size = condition.shape()[0];
  hone::Graph& g = condition.graph();
  Value ones = cast_to(condition, DType::i64);
  Value rank = minus(ops::cumulative(ones, {{"axis", std::int64_t{0}},
                                            {"kind", std::string("sum")},
                                            {"exclusive", std::int64_t{0}},
                                            {"reverse", std::int64_t{0}}}),
                     integer(g, 1));
  Value at = where(condition, rank, size_value(g, size, DType::i64));
  Value places = ops::scatter(
      Values{integers_filled(g, DType::i64, Shape{size}, 0), at, counted(g, DType::i64, size)},
      {{"axis", std::int64_t{0}}, {"kind", std::string("set")}});
  return {places, rank, reduce_axes(ops::reduce_sum, ones, {0})};
}

namespace {

Value front(Value v, const Dim& size) { return slice_axis(v, 0, 0, size); }

Value not_zero(Value x) {
  if (x.dtype() == DType::b1) return x;
  return ops::ne(x, is_float(x.dtype()) ? constant_like(x, 0) : integer_like(x, 0));
}

// The positions where x is not zero, one row per axis.
Values non_zero(NodeContext& c) {
  Value x = c.in(0);
  const Shape shape = x.rank() == 0 ? Shape{Dim(1)} : x.shape();
  Chosen found = chosen(not_zero(flatten(x)));
  const Dim n = c.measured(found.count, shape.count());
  Value at = front(found.places, n);
  Values rows;
  Dim stride = shape.count();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    stride = product(std::span(shape.dims).subspan(static_cast<std::size_t>(axis) + 1));
    auto number = [&](const Dim& d) { return size_value(x.graph(), d, DType::i64); };
    Value row = over(at, number(max(stride, 1)));
    if (axis > 0) row = joined(ops::mod, row, number(max(shape[axis], 1)));
    rows.push_back(reshape_to(row, {Dim(1), n}));
  }
  return {x.rank() == 0 ? front(reshape_to(rows[0], {Dim(1), n}), 0) : concat_values(rows, 0)};
}

// The slices of x, or elements if no axis is given, for which the condition holds.
Values compress(NodeContext& c) {
  Value x = c.in(0), condition = c.in(1);
  std::int64_t axis = 0;
  if (c.has_attribute("axis"))
    axis = c.axis(c.integer("axis", 0), x.rank());
  else
    x = flatten(x);
  if (condition.rank() != 1 || condition.dtype() != DType::b1)
    c.bad_input(1, "condition", "bool of one axis");
  const Dim size = x.shape()[static_cast<int>(axis)], given = condition.shape()[0];
  c.graph().require_equal(max(given, size), size,
                          cat("input 1 ('condition') has ", amount(given, "element", "elements"),
                              ", expected at most ", size, ", the size of axis ", axis));
  Chosen found = chosen(condition);
  const Dim n = c.measured(found.count, given);
  return {ops::gather(Values{x, front(found.places, n)}, {{"axis", axis}})};
}

// ==== Unique

// The elements of `x` at `places`, all of rank 1.
Value at_places(Value x, Value places) {
  return ops::gather(Values{x, places}, {{"axis", std::int64_t{0}}});
}

Value scattered(Value into, Value places, Value updates, std::string kind) {
  return ops::scatter(Values{into, places, updates},
                      {{"axis", std::int64_t{0}}, {"kind", std::move(kind)}});
}

// Numbers in the same order as the values: bools cannot be sorted.
Value sortable(Value x) { return x.dtype() == DType::b1 ? cast_to(x, DType::u8) : x; }

// The stable order of the rows of x [n, r]: by the first column, then by the second, ...
Value row_order(NodeContext& c, Value x) {
  constexpr std::int64_t most_columns = 256;
  const std::optional<std::int64_t> columns = x.shape()[1].as_number();
  if (!columns || *columns > most_columns)
    c.unsupported(cat("rows of 'X' have ", amount(x.shape()[1], "element", "elements"),
                      ", expected at most ", most_columns));
  Value order = counted(x.graph(), DType::i64, x.shape()[0]);
  for (std::int64_t k = *columns; k-- > 0;) {
    Value column = at_places(take_axis(x, 1, k), order);
    Value by = ops::sort(column, {{"axis", std::int64_t{0}}, {"descending", std::int64_t{0}}});
    order = at_places(order, by.result(1));
  }
  return order;
}

// Whether row k of x [n, r] differs from the row before it; true for the first.
Value starts_run(Value x) {
  const Dim n = x.shape()[0];
  hone::Graph& g = x.graph();
  Value place = counted(g, DType::i64, n);
  Value before = ops::maximum(place - integer_like(place, 1), integer_like(place, 0));
  Value unlike = ops::ne(x, at_places(x, before));
  Value any = reduce_axes(ops::reduce_or, unlike, {1});
  return ops::bit_or(any, ops::eq(place, integer_like(place, 0)));
}

// Equal rows are adjacent once sorted; the groups are numbered by value or by first position.
struct Groups {
  Value first;  // by group: the position of its first row; n at most
  Value of;     // by row: its group
  Value count;
};

Groups sorted_groups(NodeContext& c, Value x) {
  Value order = row_order(c, x);
  Chosen runs = chosen(starts_run(at_places(x, order)));
  Value zeros = integers_filled(x.graph(), DType::i64, Shape{x.shape()[0]}, 0);
  return {at_places(order, runs.places), scattered(zeros, order, runs.rank, "set"), runs.count};
}

// A row is the first of its group if it is at the group's first position.
Groups by_first_place(const Groups& sorted) {
  Value place = counted(sorted.of.graph(), DType::i64, sorted.of.shape()[0]);
  Value first_of_row = at_places(sorted.first, sorted.of);
  Chosen firsts = chosen(ops::eq(place, first_of_row));
  return {firsts.places, at_places(firsts.rank, first_of_row), sorted.count};
}

Values unique(NodeContext& c) {
  Value x = c.in(0);
  if (x.dtype() == DType::text)
    c.unsupported(cat("input 0 ('X') is ", x.type(), ", expected numbers"));
  const bool whole = !c.has_attribute("axis");
  const int axis = whole ? 0 : c.axis(c.integer("axis", 0), x.rank());
  if (whole) x = flatten(x);
  const Dim n = x.shape()[axis];
  Axes order = {axis};
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) order.push_back(i);
  Value first_axis = transpose_by(x, order);
  Dim rest = 1;
  for (int i = 1; i < first_axis.rank(); ++i) rest = rest * first_axis.shape()[i];
  Groups groups = sorted_groups(c, sortable(reshape_to(first_axis, {n, rest})));
  if (!c.flag("sorted", true)) groups = by_first_place(groups);
  const Dim size = c.measured(groups.count, n);
  Value first = front(groups.first, size);
  Value ones = integers_filled(x.graph(), DType::i64, Shape{n}, 1);
  Value zeros = integers_filled(x.graph(), DType::i64, Shape{n}, 0);
  return {ops::gather(Values{x, first}, {{"axis", std::int64_t{axis}}}), first, groups.of,
          front(scattered(zeros, groups.of, ones, "add"), size)};
}

// Height and width are known only when the image is decoded.
Values image_decoder(NodeContext& c) {
  constexpr std::int64_t most_bytes = 1 << 26, most_side = 65535;
  const std::string_view format = c.text("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale")
    c.bad_attribute("pixel_format", format, "RGB, BGR or Grayscale");
  const std::string kind = format == "RGB" ? "rgb" : format == "BGR" ? "bgr" : "gray";
  Value made = ops::decode_image(c.in(0), {{"kind", kind}, {"count", most_bytes}});
  Value sizes = made.result(1);
  const Dim height = c.measured(slice_axis(sizes, 0, 0, 1), most_side),
            width = c.measured(slice_axis(sizes, 0, 1, 1), most_side);
  const Shape shape{height, width, kind == "gray" ? 1 : 3};
  return {reshape_to(front(made, shape.count()), shape.dims)};
}

constexpr ImportEntry dynamic_table[] = {
    {"ImageDecoder", image_decoder},
    {"NonZero", non_zero},
    {"Compress", compress},
    {"Unique", unique},
};

}  // namespace

std::span<const ImportEntry> dynamic_imports() { return dynamic_table; }

}  // namespace hone::onnx
