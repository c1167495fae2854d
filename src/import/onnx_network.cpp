#include <algorithm>
#include <limits>

#include "import/onnx_context.h"

namespace hone::onnx {

namespace {

Dims ones(std::size_t n) { return Dims(n, Dim(1)); }

// Attributes that Conv and the pools share, for `spatial` axes. With auto_pad the pads follow from
// the input's sizes.
struct SpatialAttributes {
  Dims window, strides, dilations, pads_low, pads_high;
};

Dims list_or_ones(NodeContext& c, std::string_view name, std::size_t n) {
  auto list = c.integers(name);
  if (!list) return ones(n);
  if (list->size() != n) c.fail(cat(name, " has ", list->size(), " entries, expected ", n));
  for (std::int64_t v : *list)
    if (v < 1) c.fail(cat(name, " holds ", v, "; it must be positive"));
  return dims_of(*list);
}

// How far a window reaches, its dilation included.
Dim reach_of(const Dim& window, const Dim& dilation) {
  return (window - Dim(1)) * dilation + Dim(1);
}

// As many outputs as the input has strides; an odd pad goes to the end, or to the start.
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
  if (pads.size() != 2 * n) c.fail(cat("pads has ", pads.size(), " entries, expected ", 2 * n));
  for (std::size_t i = 0; i < n; ++i) {
    if (pads[i] < 0 || pads[i + n] < 0) c.fail("pads must not be negative");
    a.pads_low[i] = pads[i];
    a.pads_high[i] = pads[i + n];
  }
}

SpatialAttributes spatial_attributes(NodeContext& c, Dims window, const Shape& input) {
  std::size_t n = window.size();
  if (input.rank() != static_cast<int>(n) + 2)
    c.fail(cat("input ", input, " has ", input.rank() - 2, " spatial axes, the window has ", n));
  SpatialAttributes a{std::move(window), list_or_ones(c, "strides", n),
                      list_or_ones(c, "dilations", n), Dims(n, Dim(0)), Dims(n, Dim(0))};
  std::string_view mode = c.text("auto_pad", "NOTSET");
  auto pads = c.integers("pads");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    same_pads(a, input, mode == "SAME_UPPER");
  } else if (mode == "NOTSET") {
    if (pads) given_pads(c, a, *pads);
  } else if (mode != "VALID") {
    c.fail(cat("auto_pad is '", mode, "', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID"));
  }
  return a;
}

// [C] as [1, C, 1, ...] broadcast to `shape`.
Value along_channels(Value v, const Shape& shape) {
  Dims dims(static_cast<std::size_t>(shape.rank()), Dim(1));
  dims[1] = v.shape().count();
  return broadcast_to(reshape_to(v, dims), shape);
}

void check_kernel_shape(NodeContext& c, const Dims& window) {
  auto given = c.integers("kernel_shape");
  if (!given) return;
  bool fits = given->size() == window.size();
  for (std::size_t i = 0; fits && i < window.size(); ++i)
    fits = prove_equal(window[i], (*given)[i]) != false;
  if (!fits)
    c.fail(cat("kernel_shape is ", Shape(dims_of(*given)), ", the weights' is ", Shape(window)));
}

Values conv_import(NodeContext& c) {
  Value x = c.in(0), w = c.in(1);
  if (w.rank() < 3) c.fail(cat("weights ", w.type(), " have no spatial axis"));
  Dims window(w.shape().dims.begin() + 2, w.shape().dims.end());
  check_kernel_shape(c, window);
  SpatialAttributes a = spatial_attributes(c, window, x.shape());
  Value y = ops::conv(Values{x, w}, {{"strides", a.strides},
                                     {"dilations", a.dilations},
                                     {"pads_low", a.pads_low},
                                     {"pads_high", a.pads_high},
                                     {"groups", c.integer("group", 1)},
                                     {"channels_last", std::int64_t{0}}});
  if (c.has(2)) y = y + along_channels(c.in(2), y.shape());
  return {y};
}

Window pool_window(NodeContext& c) {
  auto kernel = c.integers("kernel_shape");
  if (!kernel) c.fail("kernel_shape is missing");
  for (std::int64_t n : *kernel)
    if (n < 1) c.fail(cat("kernel_shape holds ", n, "; it must be positive"));
  SpatialAttributes a = spatial_attributes(c, dims_of(*kernel), c.in(0).shape());
  return {.size = a.window,
          .strides = a.strides,
          .dilations = a.dilations,
          .pads_low = a.pads_low,
          .pads_high = a.pads_high};
}

// With ceil_mode the last window may hang over the end: by so many elements. It must start inside
// the input or its low pad.
Dim overhang(const Window& w, std::size_t i, const Dim& size) {
  Dim reach = reach_of(w.size[i], w.dilations[i]), padded = size + w.pads_low[i] + w.pads_high[i];
  Dim steps = ceil_div(padded - reach, w.strides[i]);
  Dim last = floor_div(size + w.pads_low[i] - Dim(1), w.strides[i]);
  return max(min(steps, last) * w.strides[i] + reach - padded, 0);
}

Dims overhangs(NodeContext& c, const Window& w) {
  Dims out(w.size.size(), Dim(0));
  if (!c.flag("ceil_mode")) return out;
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = overhang(w, i, c.in(0).shape()[static_cast<int>(i) + 2]);
  return out;
}

Values max_pool_import(NodeContext& c) {
  c.ignore("storage_order");  // the order of indices, which are not given
  if (c.wants(1)) c.unsupported("the second output, indices");
  Window w = pool_window(c);
  Dims over = overhangs(c, w);
  for (std::size_t i = 0; i < over.size(); ++i) w.pads_high[i] = w.pads_high[i] + over[i];
  return {max_pool(c.in(0), w)};
}

// Pads that count are made real zeros, so that what hangs over, which never counts, can be pads.
Value with_real_pads(Value x, Window& w) {
  Dims low = {0, 0}, high = {0, 0};
  low.insert(low.end(), w.pads_low.begin(), w.pads_low.end());
  high.insert(high.end(), w.pads_high.begin(), w.pads_high.end());
  w.pads_low = w.pads_high = Dims(w.size.size(), Dim(0));
  return pad_with(x, scalar(x.graph(), 0, x.dtype()), low, high);
}

Values average_pool_import(NodeContext& c) {
  Window w = pool_window(c);
  Value x = c.in(0);
  bool include_pads = c.flag("count_include_pad");
  Dims over = overhangs(c, w);
  bool hangs = over != Dims(over.size(), Dim(0));
  if (include_pads && hangs) x = with_real_pads(x, w);
  for (std::size_t i = 0; i < over.size(); ++i) w.pads_high[i] = w.pads_high[i] + over[i];
  return {average_pool(x, w, include_pads && !hangs)};
}

Axes spatial_axes(NodeContext& c) {
  Axes axes;
  for (int i = 2; i < c.in(0).rank(); ++i) axes.push_back(i);
  return axes;
}

Value mean_over(Value x, const Axes& axes, bool keep) {
  Value m = ops::mean(x, {{"axes", dims_of_axes(axes)}});
  return keep ? unsqueeze(m, axes) : m;
}

Values global_average_pool(NodeContext& c) { return {mean_over(c.in(0), spatial_axes(c), true)}; }
Values global_max_pool(NodeContext& c) {
  return {reduce_axes(ops::reduce_max, c.in(0), spatial_axes(c), true)};
}

Values batch_norm_import(NodeContext& c) {
  for (std::string_view name : {"momentum", "consumed_inputs", "is_test"}) c.ignore(name);
  if (!c.flag("spatial", true)) c.unsupported("spatial = 0, statistics for each element");
  if (c.flag("training_mode") || c.wants(1))
    c.unsupported("training mode; export the model for inference");
  std::vector<Value> operands = {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)};
  return {
      ops::batch_norm(operands, {{"axis", std::int64_t{1}}, {"epsilon", c.real("epsilon", 1e-5)}})};
}

// Before opset 13 the axes from `axis` on are one.
template <const Op& op>
Values softmax_import(NodeContext& c) {
  Value x = c.in(0);
  int axis = c.axis(c.integer("axis", c.opset() < 13 ? 1 : -1), x.rank());
  if (c.opset() >= 13 || axis == x.rank() - 1) return {op(x, {{"axis", std::int64_t{axis}}})};
  std::span<const Dim> dims = x.shape().dims;
  Value flat = reshape_to(x, {product(dims.first(static_cast<std::size_t>(axis))),
                              product(dims.subspan(static_cast<std::size_t>(axis)))});
  return {reshape_to(op(flat, {{"axis", std::int64_t{1}}}), x.shape().dims)};
}

// Axes of a Reduce node: by attribute or operand; none means all, unless noop_with_empty_axes.
std::optional<Axes> reduction_axes(NodeContext& c) {
  const bool noop = c.flag("noop_with_empty_axes");
  auto list = c.list("axes", 1);
  const int rank = c.in(0).rank();
  if (!list || list->empty()) {
    if (noop) return std::nullopt;
    return all_axes(rank);
  }
  return c.axes(*list, rank);
}

// Reduces what `before` makes of x and gives it to `after`. Nothing but them happens without axes.
template <class Before, class Reduce, class After>
Values reduced(NodeContext& c, Before before, Reduce reduce, After after) {
  const bool keep = c.flag("keepdims", true);
  std::optional<Axes> axes = reduction_axes(c);
  Value x = before(c.in(0));
  return {after(axes ? reduce(x, *axes, keep) : x)};
}

Value as_it_is(Value x) { return x; }

template <const Op& op>
Value reduce_by(Value x, const Axes& axes, bool keep) {
  return reduce_axes(op, x, axes, keep);
}

// On bools the extremes are and and or.
template <const Op& op, const Op& of_bools>
Values reduce_extreme(NodeContext& c) {
  if (c.in(0).dtype() == DType::b1) return reduced(c, as_it_is, reduce_by<of_bools>, as_it_is);
  return reduced(c, as_it_is, reduce_by<op>, as_it_is);
}

template <const Op& op>
Values reduce_import(NodeContext& c) {
  return reduced(c, as_it_is, reduce_by<op>, as_it_is);
}

Values reduce_mean(NodeContext& c) { return reduced(c, as_it_is, mean_over, as_it_is); }

Values reduce_sum_square(NodeContext& c) {
  return reduced(c, [](Value x) { return x * x; }, reduce_by<ops::reduce_sum>, as_it_is);
}

Values reduce_l1(NodeContext& c) {
  return reduced(c, [](Value x) { return ops::abs(x); }, reduce_by<ops::reduce_sum>, as_it_is);
}

Values reduce_l2(NodeContext& c) {
  return reduced(
      c, [](Value x) { return x * x; }, reduce_by<ops::reduce_sum>,
      [](Value y) { return ops::sqrt(y); });
}

Values reduce_log_sum(NodeContext& c) {
  return reduced(c, as_it_is, reduce_by<ops::reduce_sum>, [](Value y) { return ops::log(y); });
}

// The largest element is taken out, so that no exponential overflows; where it is infinite nothing
// is, because infinity - infinity is no number.
Value log_sum_exp(Value x, const Axes& axes, bool keep) {
  Value largest = reduce_axes(ops::reduce_max, x, axes, true);
  Value infinite =
      ops::eq(ops::abs(largest), constant_like(largest, std::numeric_limits<double>::infinity()));
  Value shift = ops::select(Values{infinite, constant_like(largest, 0), largest});
  Value sum =
      reduce_axes(ops::reduce_sum, ops::exp(x - broadcast_to(shift, x.shape())), axes, true);
  Value y = ops::log(sum) + shift;
  return keep ? y : squeeze(y, axes);
}

Values reduce_log_sum_exp(NodeContext& c) { return reduced(c, as_it_is, log_sum_exp, as_it_is); }

// The last of equals is the first from the back.
template <const Op& op>
Values arg_import(NodeContext& c) {
  Value x = c.in(0);
  int axis = c.axis(c.integer("axis", 0), x.rank());
  const bool last = c.flag("select_last_index"), keep = c.flag("keepdims", true);
  Value y =
      op(last ? reverse_axes(x, {axis}) : x, {{"axis", std::int64_t{axis}}, {"dtype", DType::i64}});
  if (last)
    y = broadcast_to(size_value(c.graph(), x.shape()[axis] - Dim(1), DType::i64), y.shape()) - y;
  return {keep ? unsqueeze(y, {axis}) : y};
}

Values matmul_import(NodeContext& c) { return {ops::matmul(c.in(0), c.in(1))}; }

Values gemm_import(NodeContext& c) {
  c.ignore("broadcast");  // before opset 7: what every newer one does
  Value a = c.in(0), b = c.in(1);
  if (a.rank() != 2 || b.rank() != 2) c.fail(cat(a.type(), " and ", b.type(), " are no matrices"));
  if (c.flag("transA")) a = transpose_matrix(a);
  if (c.flag("transB")) b = transpose_matrix(b);
  const double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  Value y = ops::matmul(a, b);
  if (alpha != 1) y = y * alpha;
  if (!c.has(2)) return {y};
  Value bias = c.in(2);
  if (beta != 1) bias = bias * beta;
  return {y + broadcast_to(bias, y.shape())};
}

// Scale or bias of a norm over the axes from `axis` on.
Value norm_operand(NodeContext& c, std::size_t input, double fallback, int axis) {
  const Shape& x = c.in(0).shape();
  Dims tail(x.dims.begin() + axis, x.dims.end());
  Value v = c.has(input) ? c.in(input) : scalar(c.graph(), fallback, c.in(0).dtype());
  return broadcast_to(v, Shape(std::move(tail)));
}

void check_stash(NodeContext& c) {
  if (c.integer("stash_type", 1) != 1) c.unsupported("a stash_type other than 1 (f32)");
}

// The mean and 1 / sqrt(variance + epsilon) of each row, in f32, with axes of size 1.
std::pair<Value, Value> row_statistics(Value x, const Axes& axes, double epsilon) {
  x = cast_to(x, DType::f32);
  Value mean = mean_over(x, axes, true);
  Value centred = x - broadcast_to(mean, x.shape());
  return {mean, ops::rsqrt(mean_over(centred * centred, axes, true) + epsilon)};
}

Values layer_norm_import(NodeContext& c) {
  check_stash(c);
  Value x = c.in(0);
  const int axis = c.axis(c.integer("axis", -1), x.rank());
  const double epsilon = c.real("epsilon", 1e-5);
  Values operands = {x, norm_operand(c, 1, 1, axis), norm_operand(c, 2, 0, axis)};
  Value y = ops::layer_norm(operands, {{"axis", std::int64_t{axis}}, {"epsilon", epsilon}});
  if (!c.wants(1) && !c.wants(2)) return {y};
  Axes axes;
  for (int i = axis; i < x.rank(); ++i) axes.push_back(i);
  auto [mean, inverse] = row_statistics(x, axes, epsilon);
  return {y, mean, inverse};
}

Values rms_norm_import(NodeContext& c) {
  check_stash(c);
  Value x = c.in(0);
  int axis = c.axis(c.integer("axis", -1), x.rank());
  return {ops::rms_norm(Values{x, norm_operand(c, 1, 1, axis)},
                        {{"axis", std::int64_t{axis}}, {"epsilon", c.real("epsilon", 1e-5)}})};
}

// Each group of channels of each sample has mean 0 and variance 1, then scale and bias by channel.
Value grouped_norm(NodeContext& c, const Dim& groups, double epsilon) {
  Value x = c.in(0);
  const Shape shape = x.shape();
  Dim row = product(std::span(shape.dims).subspan(1));
  Value rows = reshape_to(x, {shape[0], groups, floor_div(row, groups)});
  Shape each{rows.shape()[2]};
  Values operands = {rows, broadcast_to(scalar(c.graph(), 1, x.dtype()), each),
                     broadcast_to(scalar(c.graph(), 0, x.dtype()), each)};
  Value y = ops::layer_norm(operands, {{"axis", std::int64_t{2}}, {"epsilon", epsilon}});
  y = reshape_to(y, shape.dims);
  return y * along_channels(c.in(1), shape) + along_channels(c.in(2), shape);
}

void check_channels(NodeContext& c) {
  if (c.in(0).rank() < 2) c.fail(cat(c.in(0).type(), " has no channels"));
}

Values instance_norm(NodeContext& c) {
  c.ignore("consumed_inputs");
  check_channels(c);
  return {grouped_norm(c, c.in(0).shape()[1], c.real("epsilon", 1e-5))};
}

Values group_norm(NodeContext& c) {
  check_stash(c);
  check_channels(c);
  std::int64_t groups = c.integer("num_groups", 0);
  if (groups < 1) c.fail(cat("num_groups is ", groups));
  return {grouped_norm(c, groups, c.real("epsilon", 1e-5))};
}

// Operand `input` of one direction, or zeros of the given shape.
Value of_direction(NodeContext& c, std::size_t input, int direction, const Shape& shape) {
  if (!c.has(input)) return broadcast_to(scalar(c.graph(), 0, c.in(0).dtype()), shape);
  return take_axis(c.in(input), 0, direction);
}

Value lstm_direction(NodeContext& c, int direction, bool reverse) {
  if (c.in(0).rank() != 3 || c.in(2).rank() != 3)
    c.fail(cat(c.in(0).type(), " and ", c.in(2).type(), " must have three axes"));
  const Dim hidden = c.in(2).shape()[2], batch = c.in(0).shape()[1];
  if (std::int64_t given = c.integer("hidden_size", 0);
      c.has_attribute("hidden_size") && prove_equal(hidden, given) == false)
    c.fail(cat("hidden_size is ", given, ", the weights' is ", hidden));
  Value w = take_axis(c.in(1), 0, direction), r = take_axis(c.in(2), 0, direction);
  Shape state{batch, hidden}, gates{hidden * Dim(4)};
  Value bias = broadcast_to(scalar(c.graph(), 0, w.dtype()), gates);
  if (c.has(3)) {  // [8h]: of the input, then of the recurrence
    Value both = take_axis(c.in(3), 0, direction);
    bias = slice_axis(both, 0, 0, gates[0]) + slice_axis(both, 0, gates[0], gates[0]);
  }
  Values operands = {c.in(0),
                     w,
                     r,
                     bias,
                     of_direction(c, 5, direction, state),
                     of_direction(c, 6, direction, state)};
  if (c.has(4)) operands.push_back(c.in(4));
  return ops::lstm(operands, {{"reverse", std::int64_t{reverse}}});
}

void check_lstm(NodeContext& c, std::size_t directions) {
  if (c.flag("layout")) c.unsupported("layout 1");
  if (c.has(7)) c.unsupported("peepholes");
  if (c.has_attribute("clip") || c.flag("input_forget")) c.unsupported("clip and input_forget");
  constexpr std::string_view usual[] = {"Sigmoid", "Tanh", "Tanh"};
  auto given = c.texts("activations");
  bool fits = !given || given->size() == 3 * directions;
  for (std::size_t i = 0; given && fits && i < given->size(); ++i)
    fits = (*given)[i] == usual[i % 3];
  if (!fits) c.unsupported("activations other than Sigmoid, Tanh, Tanh");
}

Values lstm_import(NodeContext& c) {
  std::string_view way = c.text("direction", "forward");
  if (way != "forward" && way != "reverse" && way != "bidirectional")
    c.fail(cat("direction is '", way, "', expected forward, reverse or bidirectional"));
  const int directions = way == "bidirectional" ? 2 : 1;
  check_lstm(c, static_cast<std::size_t>(directions));
  Values y, h, cell;
  for (int d = 0; d < directions; ++d) {
    Value made = lstm_direction(c, d, way == "reverse" || d == 1);
    y.push_back(unsqueeze(made, {1}));
    h.push_back(unsqueeze(made.result(1), {0}));
    cell.push_back(unsqueeze(made.result(2), {0}));
  }
  return {concat_values(y, 1), concat_values(h, 0), concat_values(cell, 0)};
}

constexpr ImportEntry entries[] = {
    {"Conv", conv_import},
    {"MaxPool", max_pool_import},
    {"AveragePool", average_pool_import},
    {"GlobalAveragePool", global_average_pool},
    {"GlobalMaxPool", global_max_pool},
    {"BatchNormalization", batch_norm_import},
    {"Softmax", softmax_import<ops::softmax>},
    {"LogSoftmax", softmax_import<ops::log_softmax>},
    {"ReduceSum", reduce_import<ops::reduce_sum>},
    {"ReduceMax", reduce_extreme<ops::reduce_max, ops::reduce_or>},
    {"ReduceMin", reduce_extreme<ops::reduce_min, ops::reduce_and>},
    {"ReduceProd", reduce_import<ops::reduce_prod>},
    {"ReduceMean", reduce_mean},
    {"ArgMax", arg_import<ops::argmax>},
    {"ArgMin", arg_import<ops::argmin>},
    {"MatMul", matmul_import},
    {"Gemm", gemm_import},
    {"LayerNormalization", layer_norm_import, 17},
    {"RMSNormalization", rms_norm_import, 23},
    {"InstanceNormalization", instance_norm},
    {"GroupNormalization", group_norm, 21},
    {"ReduceSumSquare", reduce_sum_square},
    {"ReduceL1", reduce_l1},
    {"ReduceL2", reduce_l2},
    {"ReduceLogSum", reduce_log_sum},
    {"ReduceLogSumExp", reduce_log_sum_exp},
    {"LSTM", lstm_import},
};

}  // namespace

std::span<const ImportEntry> network_imports() { return entries; }

}  // namespace hone::onnx
