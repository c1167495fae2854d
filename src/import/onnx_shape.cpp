#include <algorithm>
#include <limits>

#include "import/onnx_context.h"

namespace hone::onnx {

namespace {

constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

int axis_of(NodeContext& c, std::int64_t axis, int rank) {
  return normal_axis(axis, rank, c.node().op);
}

Axes axes_from(NodeContext& c, const std::vector<std::int64_t>& list, int rank) {
  Axes out;
  for (std::int64_t a : list) out.push_back(axis_of(c, a, rank));
  return out;
}

Values identity(NodeContext& c) { return {c.in(0)}; }

Values dropout(NodeContext& c) {
  if (c.has(2) && contents_of(c.in(2)) != Dims{0})
    c.fail("training mode is not supported in inference; export the model for inference");
  Value x = c.in(0);
  Value all = broadcast_to(constant(c.graph(), Array::scalar_int(1, DType::b1)), x.shape());
  return {x, all};
}

Values constant_import(NodeContext& c) {
  auto ints = [&](const std::vector<std::int64_t>& list, std::vector<std::int64_t> dims) {
    return constant(c.graph(), Array::of<std::int64_t>(DType::i64, std::move(dims), list));
  };
  auto reals = [&](const std::vector<float>& list, std::vector<std::int64_t> dims) {
    return constant(c.graph(), Array::of<float>(DType::f32, std::move(dims), list));
  };
  if (std::optional<Array> a = c.tensor("value")) return {constant(c.graph(), *a)};
  if (const Attribute* a = c.node().find("value_int")) return {ints({a->integer}, {})};
  if (const Attribute* a = c.node().find("value_float")) return {reals({a->real}, {})};
  if (const Attribute* a = c.node().find("value_ints"))
    return {ints(a->integers, {static_cast<std::int64_t>(a->integers.size())})};
  if (const Attribute* a = c.node().find("value_floats"))
    return {reals(a->reals, {static_cast<std::int64_t>(a->reals.size())})};
  c.fail("holds no tensor, number or list of numbers");
}

Values constant_of_shape(NodeContext& c) {
  Array value = c.tensor("value").value_or(Array::scalar(0, DType::f32));
  if (value.count() != 1) c.fail(cat("value has ", value.count(), " elements, expected one"));
  Value one = reshape_to(constant(c.graph(), value), {});
  return {broadcast_to(one, Shape(c.contents(0)))};
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

Values reshape_import(NodeContext& c) {
  Value x = c.in(0);
  Dims shape = c.integers("shape") ? dims_of(*c.integers("shape")) : c.contents(1);
  Dim rest = 1;
  int unknown = -1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == Dim(0) && !c.integer("allowzero", 0)) {
      if (static_cast<int>(i) >= x.rank())
        c.fail(cat("size 0 at axis ", i, " copies an axis that ", x.type(), " does not have"));
      shape[i] = x.shape()[static_cast<int>(i)];
    }
    if (shape[i] == Dim(-1)) {
      if (unknown >= 0) c.fail("two sizes are -1; only one can be inferred");
      unknown = static_cast<int>(i);
    } else {
      rest = rest * shape[i];
    }
  }
  if (unknown >= 0) shape[static_cast<std::size_t>(unknown)] = floor_div(x.shape().count(), rest);
  return {reshape_to(x, shape)};
}

Values flatten_import(NodeContext& c) {
  Value x = c.in(0);
  std::int64_t axis = c.integer("axis", 1);
  if (axis < 0) axis += x.rank();
  if (axis < 0 || axis > x.rank()) c.fail(cat("axis ", axis, " of ", x.type()));
  std::span<const Dim> dims = x.shape().dims;
  auto split = static_cast<std::size_t>(axis);
  return {reshape_to(x, {product(dims.first(split)), product(dims.subspan(split))})};
}

Values squeeze_import(NodeContext& c) {
  Value x = c.in(0);
  if (auto axes = c.list("axes", 1)) return {squeeze(x, axes_from(c, *axes, x.rank()))};
  Axes ones;
  for (int i = 0; i < x.rank(); ++i)
    if (x.shape()[i] == Dim(1)) ones.push_back(i);
  return {squeeze(x, ones)};
}

Values unsqueeze_import(NodeContext& c) {
  Value x = c.in(0);
  auto axes = c.list("axes", 1);
  if (!axes) c.fail("axes are missing");
  return {unsqueeze(x, axes_from(c, *axes, x.rank() + static_cast<int>(axes->size())))};
}

Values expand_import(NodeContext& c) {
  Value x = c.in(0);
  Shape to = broadcast_shape(c.graph(), x.shape(), Shape(c.contents(1)), "Expand");
  return {broadcast_to(x, to)};
}

Values transpose_import(NodeContext& c) {
  Value x = c.in(0);
  Axes perm;
  if (auto list = c.integers("perm"))
    perm = axes_from(c, *list, x.rank());
  else
    for (int i = x.rank(); i-- > 0;) perm.push_back(i);
  return {transpose_by(x, perm)};
}

Values concat_import(NodeContext& c) {
  if (c.inputs() == 0) c.fail("needs at least one operand");
  int axis = axis_of(c, c.integer("axis", 1), c.in(0).rank());
  return {concat_values(c.all_inputs(), axis)};
}

Values split_import(NodeContext& c) {
  Value x = c.in(0);
  int axis = axis_of(c, c.integer("axis", 0), x.rank());
  Dims sizes;
  if (c.integers("split")) {
    sizes = dims_of(*c.integers("split"));
  } else if (c.has(1)) {
    sizes = c.contents(1);
  } else {
    std::int64_t parts = c.integer("num_outputs", static_cast<std::int64_t>(c.outputs()));
    if (parts < 1) c.fail(cat("into ", parts, " parts"));
    Dim each = ceil_div(x.shape()[axis], parts), left = x.shape()[axis];
    for (std::int64_t i = 0; i < parts; ++i) {
      sizes.push_back(min(each, left));
      left = left - sizes.back();
    }
  }
  return split_axis(x, axis, sizes);
}

// A bound of Slice, from the front. Only a size known to be of one sign can be counted.
Dim from_front(NodeContext& c, const Dim& at, const Dim& size) {
  if (at.low() >= 0) return at;
  if (at.high() < 0) return at + size;
  c.fail(cat("bound ", at, " may be negative or not; it cannot be placed"));
}

Value slice_one(NodeContext& c, Value x, int axis, const Dim& start, const Dim& end,
                std::int64_t step) {
  const Dim size = x.shape()[axis];
  if (step == 0) c.fail("a step is 0");
  if (step > 0) {
    Dim from = min(max(from_front(c, start, size), 0), size);
    Dim to = end == Dim(unbounded) ? size : min(max(from_front(c, end, size), 0), size);
    return slice_axis(x, axis, from, ceil_div(max(to - from, 0), step), step);
  }
  if (step == std::numeric_limits<std::int64_t>::min()) c.fail("a step is out of range");
  // The end lies before the last element taken: -1 - size and below mean "past the front".
  bool past = end.is_number() && end.number() <= -unbounded + (std::int64_t{1} << 40);
  Dim last = size - Dim(1);
  Dim from = start == Dim(unbounded) ? last : min(max(from_front(c, start, size), 0), last);
  Dim to = past ? Dim(-1) : min(max(from_front(c, end, size), -1), last);
  return slice_axis(x, axis, from, ceil_div(max(from - to, 0), -step), step);
}

Values slice_import(NodeContext& c) {
  Value x = c.in(0);
  Dims starts, ends;
  std::vector<std::int64_t> axes, steps;
  if (c.integers("starts")) {
    starts = dims_of(*c.integers("starts"));
    ends = dims_of(c.integers("ends").value_or(std::vector<std::int64_t>{}));
    axes = c.integers("axes").value_or(std::vector<std::int64_t>{});
  } else {
    starts = c.contents(1);
    ends = c.contents(2);
    if (c.has(3)) axes = c.numbers(3);
    if (c.has(4)) steps = c.numbers(4);
  }
  if (axes.empty())
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (starts.size() != ends.size() || starts.size() != axes.size() || starts.size() != steps.size())
    c.fail(cat(starts.size(), " starts, ", ends.size(), " ends, ", axes.size(), " axes and ",
               steps.size(), " steps do not match"));
  for (std::size_t i = 0; i < starts.size(); ++i)
    x = slice_one(c, x, axis_of(c, axes[i], x.rank()), starts[i], ends[i], steps[i]);
  return {x};
}

Values gather_import(NodeContext& c) {
  Value x = c.in(0);
  return {ops::gather(std::vector<Value>{x, c.in(1)},
                      {{"axis", std::int64_t{axis_of(c, c.integer("axis", 0), x.rank())}}})};
}

Values pad_import(NodeContext& c) {
  Value x = c.in(0);
  auto rank = static_cast<std::size_t>(x.rank());
  Dims pads = c.integers("pads") ? dims_of(*c.integers("pads")) : c.contents(1);
  Dims low(rank, Dim(0)), high(rank, Dim(0));
  std::vector<std::int64_t> axes;
  if (c.has(3))
    axes = c.numbers(3);
  else
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (pads.size() != 2 * axes.size())
    c.fail(cat(pads.size(), " pads for ", axes.size(), " axes; expected two for each"));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    auto axis = static_cast<std::size_t>(axis_of(c, axes[i], x.rank()));
    low[axis] = max(pads[i], 0);
    high[axis] = max(pads[i + axes.size()], 0);
    Dim cut_low = max(Dim(0) - pads[i], 0), cut_high = max(Dim(0) - pads[i + axes.size()], 0);
    if (cut_low == Dim(0) && cut_high == Dim(0)) continue;
    int a = static_cast<int>(axis);
    x = slice_axis(x, a, cut_low, x.shape()[a] - cut_low - cut_high);
  }
  std::string_view mode = c.text("mode", "constant");
  if (mode == "reflect") return {ops::pad_reflect(x, {{"low", low}, {"high", high}})};
  if (mode == "edge") return {ops::pad_edge(x, {{"low", low}, {"high", high}})};
  if (mode != "constant")
    c.fail(cat("mode '", mode, "' is not supported; use constant, reflect or edge"));
  Value number =
      c.has(2) ? reshape_to(c.in(2), {}) : scalar(c.graph(), c.real("value", 0), x.dtype());
  return {pad_with(x, number, low, high)};
}

Values tile_import(NodeContext& c) { return {ops::tile(c.in(0), {{"count", c.contents(1)}})}; }

Values range_import(NodeContext& c) {
  Value start = c.in(0);
  auto from = contents_of(start), to = contents_of(c.in(1));
  if (!from || !to) c.fail("bounds must be integers that are constant or computed from shapes");
  std::int64_t step = c.numbers(2).at(0);
  if (step == 0) c.fail("the step is 0");
  Dim span = step > 0 ? (*to)[0] - (*from)[0] : (*from)[0] - (*to)[0];
  Dim n = ceil_div(max(span, 0), step > 0 ? step : -step);
  Value counted = iota_value(c.graph(), start.dtype(), Shape{n}, 0);
  Value scaled = counted * broadcast_to(integer_like(reshape_to(start, {}), step), Shape{n});
  return {scaled + broadcast_to(reshape_to(start, {}), Shape{n})};
}

constexpr ImportEntry entries[] = {
    {"Identity", identity},        {"Dropout", dropout},
    {"Constant", constant_import}, {"ConstantOfShape", constant_of_shape},
    {"Shape", shape_import},       {"Size", size_import},
    {"Reshape", reshape_import},   {"Flatten", flatten_import},
    {"Squeeze", squeeze_import},   {"Unsqueeze", unsqueeze_import},
    {"Expand", expand_import},     {"Transpose", transpose_import},
    {"Concat", concat_import},     {"Split", split_import},
    {"Slice", slice_import},       {"Gather", gather_import},
    {"Pad", pad_import},           {"Tile", tile_import},
    {"Range", range_import},
};

}  // namespace

std::span<const ImportEntry> shape_imports() { return entries; }

}  // namespace hone::onnx
