#include "import/onnx/operators/window.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/amount.h"
#include "import/common/build.h"
#include "import/onnx/operators/list.h"

namespace hone::onnx {

Dims list_or_ones(NodeContext& c, std::string_view name, std::size_t n) {
  auto list = c.integers(name);
  if (!list) return ones(n);
  if (list->size() != n)
    c.fail(cat("attribute '", name, "' has ", amount(list->size(), "entry", "entries"),
               ", expected ", n));
  for (std::int64_t v : *list)
    if (v < 1) c.fail(cat("attribute '", name, "' contains ", v, ", expected positive integers"));
  return dims_of(*list);
}

// The extent of a window, including its dilation.
Dim reach_of(const Dim& window, const Dim& dilation) {
  return (window - Dim(1)) * dilation + Dim(1);
}

// Pads for ceil(size / stride) outputs; an odd pad goes to the end, or to the start.
void same_pads(SpatialAttributes& a, const Shape& input, bool upper) {
  for (std::size_t i = 0; i < a.window.size(); ++i) {
    const Dim& size = input[static_cast<int>(i) + 2];
    Dim out = ceil_div(size, a.strides[i]);
    Dim needed = (out - Dim(1)) * a.strides[i] + reach_of(a.window[i], a.dilations[i]);
    Dim total = max(needed - size, 0), half = floor_div(total, 2);
    a.pads_low[i] = upper ? half : total - half;
    a.pads_high[i] = upper ? total - half : half;
  }
}

void given_pads(NodeContext& c, SpatialAttributes& a, const std::vector<std::int64_t>& pads) {
  const std::size_t n = a.window.size();
  if (pads.size() != 2 * n)
    c.fail(cat("attribute 'pads' has ", amount(pads.size(), "entry", "entries"), ", expected ",
               2 * n));
  for (std::size_t i = 0; i < n; ++i) {
    if (pads[i] < 0 || pads[i + n] < 0)
      c.fail(cat("attribute 'pads' contains ", std::min(pads[i], pads[i + n]),
                 ", expected 0 or more"));
    a.pads_low[i] = pads[i];
    a.pads_high[i] = pads[i + n];
  }
}

SpatialAttributes spatial_attributes(NodeContext& c, Dims window, const Shape& input) {
  std::size_t n = window.size();
  if (input.rank() != static_cast<int>(n) + 2)
    c.fail(cat("the input is ", input, ", expected ", n, n == 1 ? " spatial axis" : " spatial axes",
               " as the window has"));
  SpatialAttributes a{std::move(window), list_or_ones(c, "strides", n),
                      list_or_ones(c, "dilations", n), Dims(n, Dim(0)), Dims(n, Dim(0))};
  std::string_view mode = c.text("auto_pad", "NOTSET");
  auto pads = c.integers("pads");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    same_pads(a, input, mode == "SAME_UPPER");
  } else if (mode == "NOTSET") {
    if (pads) given_pads(c, a, *pads);
  } else if (mode != "VALID") {
    c.bad_attribute("auto_pad", mode, "NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  }
  return a;
}

Dims window_of_weights(NodeContext& c, Value w) {
  const Dims window(w.shape().dims.begin() + 2, w.shape().dims.end());
  auto given = c.integers("kernel_shape");
  if (!given) return window;
  bool fits = given->size() == window.size();
  for (std::size_t i = 0; fits && i < window.size(); ++i)
    fits = prove_equal(window[i], (*given)[i]) != false;
  if (!fits)
    c.bad_attribute("kernel_shape", Shape(dims_of(*given)),
                    cat(Shape(window), ", as in the weights"));
  for (std::size_t i = 0; i < window.size(); ++i)
    c.graph().require_equal(window[i], Dim((*given)[i]),
                            cat("attribute 'kernel_shape' is ", Shape(dims_of(*given)),
                                ", but the weights have ", Shape(window)));
  return dims_of(*given);
}

Dims kernel_shape(NodeContext& c) {
  auto kernel = c.integers("kernel_shape");
  if (!kernel) c.fail("attribute 'kernel_shape' is missing; it is required");
  for (std::int64_t n : *kernel)
    if (n < 1) c.fail(cat("attribute 'kernel_shape' contains ", n, ", expected positive integers"));
  return dims_of(*kernel);
}

// A window must fit into the padded axis.
void expect_fit(NodeContext& c, const Dim& reach, const Dim& size, const Dim& pads) {
  const Dim room = size + pads + equal(size, 0);
  if (prove_less(room, reach) == false) return;
  const std::string message =
      cat(c.op(), ": the window covers ", reach, " elements, but the padded input has ",
          size + pads, "; give a larger input");
  if (prove_less(room, reach) == true) throw UserError(message);
  c.graph().require_equal(max(reach, room), room, message);
}

namespace {

Window window_of(const SpatialAttributes& a) {
  return {.size = a.window,
          .strides = a.strides,
          .dilations = a.dilations,
          .pads_low = a.pads_low,
          .pads_high = a.pads_high};
}

Window pool_window(NodeContext& c, const Shape& image) {
  return window_of(spatial_attributes(c, kernel_shape(c), image));
}

// With ceil_mode the last window may extend past the end; returns the number of elements past it.
// It must start inside the input or its low pad.
Dim overhang(const Window& w, std::size_t i, const Dim& size) {
  Dim reach = reach_of(w.size[i], w.dilations[i]), padded = size + w.pads_low[i] + w.pads_high[i];
  Dim steps = ceil_div(padded - reach, w.strides[i]);
  Dim last = floor_div(size + w.pads_low[i] - Dim(1), w.strides[i]);
  return max(min(steps, last) * w.strides[i] + reach - padded, 0);
}

Dims overhangs(NodeContext& c, const Window& w, const Shape& image) {
  Dims out(w.size.size(), Dim(0));
  if (!c.flag("ceil_mode")) return out;
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = overhang(w, i, image[static_cast<int>(i) + 2]);
  return out;
}

void add_overhang(NodeContext& c, Window& w, const Shape& image) {
  const Dims over = overhangs(c, w, image);
  for (std::size_t i = 0; i < over.size(); ++i) w.pads_high[i] = w.pads_high[i] + over[i];
}

// Along one spatial axis, the input element that output o reads at window position k: [o, k], i64;
// out of range in pads.
Value window_places(hone::Graph& g, const Window& w, std::size_t i, const Dim& outputs) {
  Shape shape{outputs, w.size[i]};
  auto number = [&](const Dim& d) { return broadcast_to(size_value(g, d, DType::i64), shape); };
  Value o = iota_value(g, DType::i64, shape, 0), k = iota_value(g, DType::i64, shape, 1);
  return o * number(w.strides[i]) + k * number(w.dilations[i]) - number(w.pads_low[i]);
}

Value within(Value at, const Dim& size) {
  Value end = broadcast_to(size_value(at.graph(), size, DType::i64), at.shape());
  return ops::bit_and(ops::le(integer_like(at, 0), at), ops::lt(at, end));
}

// The position of each element of each window in the flattened spatial axes of x, [outputs,
// window], and whether it exists. With `columns` the first axis is the contiguous one.
struct Patches {
  Value index, exists;
};
Patches patches(Value x, const Window& w, const Shape& result, bool columns) {
  const std::size_t n = w.size.size();
  hone::Graph& g = x.graph();
  Value index, exists;
  Dims outputs, window;
  for (std::size_t step = 0; step < n; ++step) {
    const std::size_t i = columns ? n - 1 - step : step;
    const int axis = static_cast<int>(i) + 2;
    Value at = window_places(g, w, i, result[axis]);
    Dims dims = ones(2 * n);
    dims[i] = result[axis];
    dims[n + i] = w.size[i];
    Value here = reshape_to(at, dims), inside = reshape_to(within(at, x.shape()[axis]), dims);
    if (!index) {
      index = here, exists = inside;
      continue;
    }
    Value size = size_value(g, x.shape()[axis], DType::i64);
    index = plus(times(index, size), here);
    exists = both(exists, inside);
  }
  for (std::size_t i = 0; i < n; ++i) outputs.push_back(result[static_cast<int>(i) + 2]);
  Dims flat = {product(outputs), product(w.size)};
  return {reshape_to(index, flat), reshape_to(exists, flat)};
}

Dim count_of(std::span<const Dim> dims) { return product(dims); }

// For weights whose sizes are not all numbers, which no convolution kernel supports: the elements
// in each window as a matrix, times the weights.
Value convolved_by_product(Value x, Value w, const SpatialAttributes& a, std::int64_t groups,
                           std::optional<DType> dtype) {
  hone::Graph& g = x.graph();
  const Shape xs = x.shape(), ws = w.shape();
  g.require_equal(
      ws[1] * Dim(groups), xs[1],
      cat("conv: channels of the weights (times ", groups, " groups) and of the input are ",
          ws[1] * Dim(groups), " and ", xs[1], ", expected equal sizes"));
  const Dim each = floor_div(ws[0], groups);
  g.require_equal(each * Dim(groups), ws[0],
                  cat("conv: the weights have ", ws[0],
                      " output channels, expected a multiple of the ", groups, " groups"));
  Shape result = xs;
  result[1] = ws[0];
  for (std::size_t i = 0; i < a.window.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    const Dim padded = xs[axis] + a.pads_low[i] + a.pads_high[i];
    result[axis] = floor_div(padded - reach_of(a.window[i], a.dilations[i]), a.strides[i]) + Dim(1);
  }
  const Patches at = patches(x, window_of(a), result, false);
  const Dim pixels = count_of(std::span(xs.dims).subspan(2));
  Value safe = ops::select(Values{at.exists, at.index, integer_like(at.index, 0)});
  Value below = ops::gather(Values{reshape_to(x, {xs[0], Dim(groups), ws[1], pixels}), safe},
                            {{"axis", std::int64_t{3}}});  // [n, group, channel, output, place]
  below = where_or(at.exists, below, 0);
  Value filters = reshape_to(w, {Dim(groups), each, ws[1], count_of(a.window)});
  Value y = dot_general(filters, below, {{0, 1}}, {{2, 2}, {3, 4}}, dtype);
  return reshape_to(transpose_by(y, Axes{2, 0, 1, 3}), result.dims);
}

// The position of each maximum among all elements of x.
Value max_indices(NodeContext& c, Value x, const Window& w, const Shape& result) {
  const Shape s = x.shape();
  const Dim p = count_of(std::span(s.dims).subspan(2));
  Patches at = patches(x, w, result, false);
  Value safe = ops::select(Values{at.exists, at.index, integer_like(at.index, 0)});
  Value values =
      ops::gather(Values{reshape_to(x, {s[0], s[1], p}), safe}, {{"axis", std::int64_t{2}}});
  Value lowest = reduce_axes(ops::reduce_max, filled(c.graph(), x.dtype(), {0}, 0), {0});
  values = where(at.exists, values, lowest);  // [n, c, outputs, window]
  Value k = ops::argmax(values, {{"axis", std::int64_t{3}}, {"dtype", DType::i64}});
  Value index = at.index;
  if (c.flag("storage_order")) index = patches(x, w, result, true).index;
  // A padding position wins only if all other elements are the lowest number too: then the first
  // element of the window is used.
  Value first = ops::argmax(cast_to(at.exists, DType::i32),
                            {{"axis", std::int64_t{1}}, {"dtype", DType::i64}});
  index = where(at.exists, index, take_along(index, unsqueeze(first, {1}), 1));
  const Dim q = index.shape()[0];
  index = reshape_to(index, {1, 1, q, index.shape()[1]});
  Value found = squeeze(take_along(index, unsqueeze(k, {3}), 3), {3});  // [n, c, outputs]
  Value image = iota_value(c.graph(), DType::i64, {s[0], s[1], 1}, 0);
  Value channel = iota_value(c.graph(), DType::i64, {s[0], s[1], 1}, 1);
  Value before = times(image, size_value(c.graph(), s[1], DType::i64)) + channel;
  found = plus(found, times(before, size_value(c.graph(), p, DType::i64)));
  return reshape_to(found, result.dims);
}

Values max_pool_import(NodeContext& c) {
  c.ignore("storage_order");
  Value x = c.in(0);
  Window w = pool_window(c, x.shape());
  add_overhang(c, w, x.shape());
  Value y = max_pool(x, w);
  if (!c.wants(1)) return {y};
  return {y, max_indices(c, x, w, y.shape())};
}

// Turns counted pads into real zeros, so that the uncounted part past the end can be padding.
Value with_real_pads(Value x, Window& w) {
  Dims low = {0, 0}, high = {0, 0};
  low.insert(low.end(), w.pads_low.begin(), w.pads_low.end());
  high.insert(high.end(), w.pads_high.begin(), w.pads_high.end());
  w.pads_low = w.pads_high = Dims(w.size.size(), Dim(0));
  return pad_with(x, scalar(x.graph(), 0, x.dtype()), low, high);
}

}  // namespace

Value convolution(Value x, Value w, const SpatialAttributes& a, std::int64_t groups,
                  std::optional<DType> dtype) {
  if (!w.shape().is_static()) return convolved_by_product(x, w, a, groups, dtype);
  Attrs attrs = {{"strides", a.strides},   {"dilations", a.dilations},
                 {"pads_low", a.pads_low}, {"pads_high", a.pads_high},
                 {"groups", groups},       {"channels_last", std::int64_t{0}}};
  if (dtype) attrs.set("dtype", *dtype);
  return ops::conv(Values{x, w}, std::move(attrs));
}

Value convolved(NodeContext& c, Value x, Value w, std::optional<DType> dtype) {
  if (w.rank() < 3) c.fail(cat("the weights are ", w.type(), ", expected at least three axes"));
  const Dims window = window_of_weights(c, w);
  const std::int64_t groups = c.integer("group", 1);
  if (groups < 1) c.bad_attribute("group", groups, "a positive integer");
  SpatialAttributes a = spatial_attributes(c, window, x.shape());
  for (std::size_t i = 0; i < window.size(); ++i) {
    const Dim& size = x.shape()[static_cast<int>(i) + 2];
    expect_fit(c, reach_of(window[i], a.dilations[i]), size, a.pads_low[i] + a.pads_high[i]);
  }
  return convolution(x, w, a, groups, dtype);
}

Value max_pooled(NodeContext& c, Value x) {
  c.ignore("storage_order");
  Window w = pool_window(c, x.shape());
  add_overhang(c, w, x.shape());
  return max_pool(x, w);
}

Value average_pooled(NodeContext& c, Value x) {
  Window w = pool_window(c, x.shape());
  bool include_pads = c.flag("count_include_pad");
  Dims over = overhangs(c, w, x.shape());
  bool hangs = over != Dims(over.size(), Dim(0));
  if (include_pads && hangs) x = with_real_pads(x, w);
  for (std::size_t i = 0; i < over.size(); ++i) w.pads_high[i] = w.pads_high[i] + over[i];
  return average_pool(x, w, include_pads && !hangs);
}

namespace {

Values conv_import(NodeContext& c) {
  Value y = convolved(c, c.in(0), c.in(1));
  if (c.has(2)) y = y + along_channels(c.in(2), y.shape());
  return {y};
}

Values average_pool_import(NodeContext& c) { return {average_pooled(c, c.in(0))}; }

// |x|^p; root() takes the p-th root of its sum over windows.
Value powers(Value x, double p) {
  if (p == 1) return ops::abs(x);
  if (p == 2) return x * x;
  return ops::pow(ops::abs(x), constant_like(x, p));
}
Value root(Value x, double p) {
  if (p == 1) return x;
  return p == 2 ? ops::sqrt(x) : ops::pow(x, constant_like(x, 1 / p));
}

double power_of(NodeContext& c) {
  const double p = c.opset() < 2 ? c.real("p", 2) : static_cast<double>(c.integer("p", 2));
  if (!(p > 0)) c.bad_attribute("p", p, "a positive number");
  return p;
}

// A window over all axes.
Attrs window_over(const Dims& size, const Dims& strides, const Dims& dilations, const Dims& low,
                  const Dims& high) {
  auto all = [](const Dims& list, std::int64_t other) {
    Dims out = {other, other};
    out.insert(out.end(), list.begin(), list.end());
    return out;
  };
  return {{"window", all(size, 1)},  {"strides", all(strides, 1)}, {"dilations", all(dilations, 1)},
          {"pads_low", all(low, 0)}, {"pads_high", all(high, 0)},  {"kind", std::string("sum")}};
}

Values lp_pool(NodeContext& c) {
  const double p = power_of(c);
  Window w = pool_window(c, c.in(0).shape());
  add_overhang(c, w, c.in(0).shape());
  const Value x = c.in(0), wide = cast_to(x, sum_dtype(x.dtype()));
  Value sums = ops::reduce_window(
      powers(wide, p), window_over(w.size, w.strides, w.dilations, w.pads_low, w.pads_high));
  return {cast_to(root(sums, p), x.dtype())};
}

// Divides by a power of the mean square over neighbouring channels.
Values local_response_norm(NodeContext& c) {
  Value x = c.in(0);
  const std::int64_t size = c.integer("size", 0);
  if (size < 1 || x.rank() < 2)
    c.fail(cat("attribute 'size' is ", size, " and the input ", x.type(),
               ", expected a positive integer and at least two axes"));
  const auto rank = static_cast<std::size_t>(x.rank());
  Dims window = ones(rank), low(rank, 0), high(rank, 0);
  window[1] = size;
  low[1] = (size - 1) / 2;
  high[1] = size - 1 - (size - 1) / 2;
  Value sums = ops::reduce_window(x * x, {{"window", window},
                                          {"strides", ones(rank)},
                                          {"dilations", ones(rank)},
                                          {"pads_low", low},
                                          {"pads_high", high},
                                          {"kind", std::string("sum")}});
  Value scale = sums * (c.real("alpha", 1e-4) / static_cast<double>(size)) + c.real("bias", 1);
  return {x / ops::pow(scale, constant_like(scale, c.real("beta", 0.75)))};
}

Axes spatial_axes(NodeContext& c) {
  Axes axes;
  for (int i = 2; i < c.in(0).rank(); ++i) axes.push_back(i);
  return axes;
}

Values global_average_pool(NodeContext& c) { return {mean_over(c.in(0), spatial_axes(c), true)}; }
Values global_max_pool(NodeContext& c) {
  return {reduce_axes(ops::reduce_max, c.in(0), spatial_axes(c), true)};
}

Values global_lp_pool(NodeContext& c) {
  const double p = power_of(c);
  const Value x = c.in(0), wide = cast_to(x, sum_dtype(x.dtype()));
  return {cast_to(root(sum_over(powers(wide, p), spatial_axes(c), true), p), x.dtype())};
}

constexpr ImportEntry window_table[] = {
    {"Conv", conv_import},
    {"MaxPool", max_pool_import},
    {"AveragePool", average_pool_import},
    {"LpPool", lp_pool},
    {"GlobalAveragePool", global_average_pool},
    {"GlobalMaxPool", global_max_pool},
    {"GlobalLpPool", global_lp_pool},
    {"LRN", local_response_norm},
};

}  // namespace

std::span<const ImportEntry> window_imports() { return window_table; }

}  // namespace hone::onnx
