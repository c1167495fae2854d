#include <algorithm>
#include <cmath>
#include <limits>

#include "base/amount.h"
#include "base/checked.h"
#include "import/common/build.h"
#include "import/onnx/node/broadcast.h"
#include "import/onnx/node/context.h"
#include "import/onnx/node/known.h"
#include "import/onnx/node/open.h"
#include "import/onnx/operators/list.h"
#include "ops/require.h"
#include "type/text.h"

namespace hone::onnx {

namespace {

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

// An element count that the graph checks against a value without data-dependent sizes; bounds
// derived from it do not multiply along a chain of reshapes.
Dim number_by_inputs(const hone::Graph& g, Dim count) {
  for (std::size_t i = g.checks().size(); i-- > 0;) {
    const DimCheck& c = g.checks()[i];
    if (room_of(g, count) == count) break;
    if (c.a == count || c.b == count) count = c.a == count ? c.b : c.a;
  }
  return count;
}

// The largest size that a data-dependent shape may give x, which has `total` elements. Besides a 0
// any size is possible, so if x may be empty its own sizes are included.
Dim most_reshaped(Value x, const Dim& total) {
  Dim most = max(total, 1);
  if (total.low() > 0) return most;
  for (const Dim& d : x.shape().dims) most = max(most, d);
  return most;
}

// A data-dependent shape: zeros and -1 are replaced at run time.
Values open_reshape(NodeContext& c, bool zeros) {
  Value x = c.in(0), given = cast_to(flatten(c.in(1)), DType::i64);
  hone::Graph& g = c.graph();
  if (!given.shape()[0].is_number()) given = c.list_of_variant(given, most_open_rank, "sizes");
  const std::int64_t rank = given.shape()[0].number();
  constexpr std::int64_t most_axes = 16;
  if (rank > most_axes) c.depends_on_data(1);
  const Dim total = number_by_inputs(g, x.shape().count());
  Dims copied;
  for (int i = 0; i < rank; ++i) copied.push_back(i < x.rank() ? x.shape()[i] : Dim(0));
  if (!zeros)
    given = ops::select(ops::eq(given, integer_like(given, 0)),
                        dims_value(g, copied, DType::i64, {rank}), given);
  Value open = ops::eq(given, integer_like(given, -1));
  Value others =
      reduce_axes(ops::reduce_prod, ops::select(open, integer_like(given, 1), given), {0});
  Value rest = ops::div(size_value(g, total, DType::i64), ops::maximum(others, integer(g, 1)));
  given = ops::select(open, broadcast_to(rest, given.shape()), given);
  const Dim most = most_reshaped(x, total);
  Dims shape;
  for (std::int64_t i = 0; i < rank; ++i)
    shape.push_back(c.measured(slice_axis(given, 0, i, 1), most));
  return {reshape_to(x, shape)};
}

// The size for -1, count / rest. Other sizes may be 0 at run time: if they are factors of the count
// they cancel, else the size is 0 like the count.
Dim remaining_size(const Dim& count, const Dim& rest) {
  if (rest.low() > 0) return floor_div(count, rest);
  if (count != Dim(0))
    if (const std::optional<Dim> exact = exact_quotient(count, rest)) return *exact;
  return floor_div(count, max(rest, 1));
}

// 0 copies the size of that axis of x, unless zeros are allowed; one -1 follows from the others.
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

// Reduces an axis to its first element, or to zero if it is empty.
Value with_size_one(Value x, int axis) {
  Shape one = x.shape();
  one[axis] = 1;
  return in_room(slice_axis(x, axis, 0, min(x.shape()[axis], 1)), one.dims);
}

// Removes data-dependent axes. Only the named axes must have size 1, so open sizes are checked at
// run time.
Value openly_squeezed(NodeContext& c, Value x) {
  const auto is_one = [&](int axis) { return prove_equal(x.shape()[axis], 1); };
  Value y = over_axes(c, 1, x.rank(), [&](const Axes& axes) {
    Value v = x;
    for (int a : axes)
      if (!is_one(a).has_value()) v = with_size_one(v, a);
    return squeeze(v, axes);
  });
  bool are_known = true;
  for (int i = 0; i < x.rank(); ++i) are_known = are_known && is_one(i).has_value();
  if (are_known) return y;
  const Value sizes = dims_value(c.graph(), x.shape().dims, DType::i64, {x.rank()}),
              named = ops::gather(Values{sizes, cast_to(flatten(c.in(1)), DType::i64)},
                                  {{"axis", std::int64_t{0}}});
  require_within(named - integer_like(named, 1), 0, 0,
                 "the size of an axis to be removed, less 1,");
  return y;
}

// Without axes, removes all axes of size 1; whether an open size is 1 is a question about sizes.
Values squeeze_import(NodeContext& c) {
  Value x = c.in(0);
  if (auto axes = c.integers("axes")) return {squeeze(x, c.axes(*axes, x.rank()))};
  if (c.has(1) && c.decides(1)) return {openly_squeezed(c, x)};
  if (c.has(1)) return {squeeze(x, c.axes(c.numbers(1), x.rank()))};
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
  const Dim count = c.in(1).shape().count();
  constexpr std::int64_t most_axes = 64, most_by_data = 6;
  const std::int64_t more =
      count.is_number()
          ? count.number()
          : c.count_of_variant(count, std::max<std::int64_t>(most_by_data - x.rank(), 0), "axes");
  if (more > most_axes) c.depends_on_data(1);
  return {over_axes(c, 1, x.rank() + static_cast<int>(more),
                    [&](const Axes& a) { return unsqueeze(x, a); })};
}

// Repeats one axis of `size` elements, or of 1, a data-dependent number of times; the number must
// be 1 if the axis has more elements.
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
  if (open == 0) {
    const Value shape = integers_filled(c.graph(), DType::b1, Shape(known), 0);
    return {broadcast_operands(c, x, shape).first};
  }
  const Shape to = broadcast_shape(c.graph(), x.shape(), Shape(known), c.op());
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

// The requested number of parts of equal size. From opset 18 on the last may be smaller; where an
// open axis is so short that this is not enough, the last ones are empty.
Dims equal_parts(NodeContext& c, const Dim& size) {
  const auto parts = static_cast<std::int64_t>(c.outputs());
  if (const std::int64_t given = c.integer("num_outputs", parts); parts < 1 || given != parts)
    c.bad_attribute("num_outputs", given, cat(parts, ", the number of outputs"));
  const Dim each = ceil_div(size, parts);
  const bool are_equal = prove_equal(each * Dim(parts), size) == true;
  if (c.opset() < 18 && !are_equal) {
    const Dim equal = floor_div(size, parts);
    c.graph().require_equal(equal * Dim(parts), size,
                            cat("the axis has ", size, " elements, expected a multiple of ", parts,
                                ", the number of outputs"));
    return Dims(static_cast<std::size_t>(parts), equal);
  }
  if (are_equal) return Dims(static_cast<std::size_t>(parts), each);
  Dims out;
  Dim start = 0;
  for (std::int64_t i = 1; i <= parts; ++i) {
    const Dim end = i == parts ? size : min(each * Dim(i), size);
    out.push_back(end - start);
    start = end;
  }
  return out;
}

Values split_import(NodeContext& c) {
  Value x = c.in(0);
  int axis = c.axis(c.integer("axis", 0), x.rank());
  Dims sizes;
  if (auto list = c.integers("split"))
    sizes = dims_of(*list);
  else
    sizes =
        c.has(1) ? part_sizes(c, 1, c.outputs(), x.shape()[axis]) : equal_parts(c, x.shape()[axis]);
  for (const Dim& d : sizes)
    if (d.high() < 0) c.fail(cat("the size of a part is ", d, ", expected 0 or more"));
  if (sizes.size() != c.outputs())
    c.fail(cat("'split' has ", amount(sizes.size(), "element", "elements"), ", expected ",
               c.outputs(), ", one for each output"));
  return split_axis(x, axis, sizes);
}

// Valid ONNX indices for an axis of size n: -n to n - 1.
void require_index(Value index, const Dim& n) { require_within(index, Dim(0) - n, n - 1, "index"); }

template <const Op& op>
Values gather_import(NodeContext& c) {
  Value x = c.in(0);
  std::int64_t axis = c.axis(c.integer("axis", 0), x.rank());
  require_index(c.in(1), x.shape()[static_cast<int>(axis)]);
  return {op(Values{x, c.in(1)}, {{"axis", axis}})};
}

// The last axis of `indices` has one index per axis of x from `first` on.
void require_places(Value indices, const Shape& x, std::int64_t first) {
  if (indices.rank() < 1 || !indices.shape()[-1].is_number()) return;  // the operation rejects it
  const std::int64_t count = indices.shape()[-1].number();
  for (std::int64_t k = 0; k < count && first + k < x.rank(); ++k)
    require_index(take_axis(indices, indices.rank() - 1, k), x[static_cast<int>(first + k)]);
}

// With this number of indices per place, which must be known.
Value of_depth(Value indices, std::int64_t depth) {
  Dims dims = indices.shape().dims;
  dims.back() = depth;
  return with_sizes(indices, dims, "input 'indices'");
}

Values gather_nd(NodeContext& c) {
  const std::int64_t batch = c.integer("batch_dims", 0);
  const Value x = c.in(0);
  Value indices = c.in(1);
  if (batch < 0 || batch >= x.rank())
    c.bad_attribute("batch_dims", batch, cat("0 to ", x.rank() - 1, " for ", x.type()));
  // An open number of indices per place decides the rank of the result: one variant for each.
  if (indices.rank() > 0 && !indices.shape()[-1].is_number())
    indices = of_depth(
        indices, c.count_of_variant(indices.shape()[-1], x.rank() - batch, "indices of a place"));
  require_places(indices, x.shape(), batch);
  return {ops::gather_nd(Values{x, indices}, {{"batch", batch}})};
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

// The ranks tell how many indices a place has: updates have an axis for each axis of `indices` but
// the last, and for each axis of x without an index.
Values scatter_nd(NodeContext& c) {
  const Value x = c.in(0), updates = c.in(2);
  Value indices = c.in(1);
  if (const int depth = indices.rank() - 1 + x.rank() - updates.rank();
      indices.rank() > 0 && depth >= 0 && !indices.shape()[-1].is_number())
    indices = of_depth(indices, depth);
  require_places(indices, x.shape(), 0);
  return {ops::scatter_nd(Values{x, indices, updates}, {{"kind", scatter_kind(c)}})};
}

// Before opset 6 one axis is repeated: operands are the repeat count and the axis.
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

// The dtype in which the numbers are computed.
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

// The count is computed at run time; it is -1, which is rejected, for a step of 0 or if one of the
// three is NaN.
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
  if (c.opset() >= 27) c.ignore("stash_type");  // relevant for narrow floats only
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

// [..., m, n]: keeps only elements on or above (or below) diagonal k.
Values triangle(NodeContext& c) {
  Value x = c.in(0);
  if (x.rank() < 2) c.bad_input(0, "input", "at least two axes");
  bool upper = c.flag("upper", true);
  Shape matrix{x.shape()[-2], x.shape()[-1]};
  // Diagonals beyond the corners are equivalent; sums with them would overflow 64 bits.
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

// Whether the block position comes before the channel in the channels of blocks.
bool is_depth_first(NodeContext& c) {
  std::string_view mode = c.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") c.bad_attribute("mode", mode, "DCR or CRD");
  return mode == "DCR";
}

// Converts blocks of channels to blocks of pixels.
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
    {"Gather", gather_import<ops::gather>},
    {"Tile", tile_import},
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
