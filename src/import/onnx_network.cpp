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

void automatic_pads(NodeContext& c, SpatialAttributes& a, const Shape& input, bool upper) {
  for (std::size_t i = 0; i < a.window.size(); ++i) {
    const Dim& size = input[static_cast<int>(i) + 2];
    Dim out = ceil_div(size, a.strides[i]);
    Dim reach = (a.window[i] - Dim(1)) * a.dilations[i] + Dim(1);
    Dim total = max((out - Dim(1)) * a.strides[i] + reach - size, 0);
    Dim half = floor_div(total, 2);
    a.pads_low[i] = upper ? half : total - half;
    a.pads_high[i] = upper ? total - half : half;
  }
  static_cast<void>(c);
}

SpatialAttributes spatial_attributes(NodeContext& c, Dims window, const Shape& input) {
  std::size_t n = window.size();
  if (input.rank() != static_cast<int>(n) + 2)
    c.fail(cat("input ", input, " has ", input.rank() - 2, " spatial axes, the window has ", n));
  SpatialAttributes a{std::move(window), list_or_ones(c, "strides", n),
                      list_or_ones(c, "dilations", n), Dims(n, Dim(0)), Dims(n, Dim(0))};
  std::string_view mode = c.text("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    automatic_pads(c, a, input, mode == "SAME_UPPER");
  } else if (auto pads = c.integers("pads"); pads && mode == "NOTSET") {
    if (pads->size() != 2 * n) c.fail(cat("pads has ", pads->size(), " entries, expected ", 2 * n));
    for (std::size_t i = 0; i < n; ++i) {
      if ((*pads)[i] < 0 || (*pads)[i + n] < 0) c.fail("pads must not be negative");
      a.pads_low[i] = (*pads)[i];
      a.pads_high[i] = (*pads)[i + n];
    }
  }
  return a;
}

// [C] as [1, C, 1, ...] broadcast to `shape`.
Value along_channels(Value v, const Shape& shape) {
  Dims dims(static_cast<std::size_t>(shape.rank()), Dim(1));
  dims[1] = v.shape().count();
  return broadcast_to(reshape_to(v, dims), shape);
}

Values conv_import(NodeContext& c) {
  Value x = c.in(0), w = c.in(1);
  if (w.rank() < 3) c.fail(cat("weights ", w.type(), " have no spatial axis"));
  Dims window(w.shape().dims.begin() + 2, w.shape().dims.end());
  if (auto given = c.integers("kernel_shape"))
    for (std::size_t i = 0; i < std::min(given->size(), window.size()); ++i)
      if (prove_equal(window[i], (*given)[i]) == false)
        c.fail(cat("kernel_shape ", (*given)[i], " is not the weights' ", window[i]));
  SpatialAttributes a = spatial_attributes(c, window, x.shape());
  Value y = ops::conv(std::vector<Value>{x, w}, {{"strides", a.strides},
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
  SpatialAttributes a = spatial_attributes(c, dims_of(*kernel), c.in(0).shape());
  Window w;
  w.size = a.window;
  w.strides = a.strides;
  w.dilations = a.dilations;
  w.pads_low = a.pads_low;
  w.pads_high = a.pads_high;
  return w;
}

// With ceil_mode the last window may hang over the end: as many elements as it hangs over.
Dim overhang(const Window& w, std::size_t i, const Dim& size) {
  Dim reach = (w.size[i] - Dim(1)) * w.dilations[i] + Dim(1);
  Dim padded = size + w.pads_low[i] + w.pads_high[i];
  Dim out = ceil_div(padded - reach, w.strides[i]) + Dim(1);
  // A window must start inside the input or its low pad.
  if (prove_less((out - Dim(1)) * w.strides[i], size + w.pads_low[i]) == false) out = out - Dim(1);
  return max((out - Dim(1)) * w.strides[i] + reach - padded, 0);
}

Values max_pool_import(NodeContext& c) {
  if (c.wants(1)) c.fail("the second output (indices) is not supported yet");
  Window w = pool_window(c);
  if (c.integer("ceil_mode", 0))
    for (std::size_t i = 0; i < w.size.size(); ++i)
      w.pads_high[i] = w.pads_high[i] + overhang(w, i, c.in(0).shape()[static_cast<int>(i) + 2]);
  return {max_pool(c.in(0), w)};
}

Values average_pool_import(NodeContext& c) {
  Window w = pool_window(c);
  if (c.integer("ceil_mode", 0))
    for (std::size_t i = 0; i < w.size.size(); ++i)
      if (overhang(w, i, c.in(0).shape()[static_cast<int>(i) + 2]) != Dim(0))
        c.fail("ceil_mode with a window that hangs over the end is not supported yet");
  return {average_pool(c.in(0), w, c.integer("count_include_pad", 0) != 0)};
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
  if (c.integer("training_mode", 0) || (c.wants(1) && c.opset() >= 14))
    c.fail("training mode is not supported; export the model for inference");
  std::vector<Value> operands = {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)};
  return {
      ops::batch_norm(operands, {{"axis", std::int64_t{1}}, {"epsilon", c.real("epsilon", 1e-5)}})};
}

// Before opset 13 the axes from `axis` on are one.
template <const Op& op>
Values softmax_import(NodeContext& c) {
  Value x = c.in(0);
  int axis = normal_axis(c.integer("axis", c.opset() < 13 ? 1 : -1), x.rank(), c.node().op);
  if (c.opset() >= 13 || axis == x.rank() - 1) return {op(x, {{"axis", std::int64_t{axis}}})};
  std::span<const Dim> dims = x.shape().dims;
  Value flat = reshape_to(x, {product(dims.first(static_cast<std::size_t>(axis))),
                              product(dims.subspan(static_cast<std::size_t>(axis)))});
  return {reshape_to(op(flat, {{"axis", std::int64_t{1}}}), x.shape().dims)};
}

// Axes of a Reduce node: by attribute or operand; none means all, unless noop_with_empty_axes.
std::optional<Axes> reduction_axes(NodeContext& c) {
  auto list = c.list("axes", 1);
  int rank = c.in(0).rank();
  if (!list || list->empty()) {
    if (c.integer("noop_with_empty_axes", 0)) return std::nullopt;
    return all_axes(rank);
  }
  Axes axes;
  for (std::int64_t a : *list) axes.push_back(normal_axis(a, rank, c.node().op));
  std::sort(axes.begin(), axes.end());
  return axes;
}

template <const Op& op>
Values reduce_import(NodeContext& c) {
  std::optional<Axes> axes = reduction_axes(c);
  if (!axes) return {c.in(0)};
  return {reduce_axes(op, c.in(0), *axes, c.integer("keepdims", 1) != 0)};
}

Values reduce_mean(NodeContext& c) {
  std::optional<Axes> axes = reduction_axes(c);
  if (!axes) return {c.in(0)};
  return {mean_over(c.in(0), *axes, c.integer("keepdims", 1) != 0)};
}

template <const Op& op>
Values arg_import(NodeContext& c) {
  if (c.integer("select_last_index", 0)) c.fail("select_last_index is not supported yet");
  Value x = c.in(0);
  int axis = normal_axis(c.integer("axis", 0), x.rank(), c.node().op);
  Value y = op(x, {{"axis", std::int64_t{axis}}, {"dtype", DType::i64}});
  return {c.integer("keepdims", 1) ? unsqueeze(y, {axis}) : y};
}

Values matmul_import(NodeContext& c) { return {ops::matmul(c.in(0), c.in(1))}; }

Values gemm_import(NodeContext& c) {
  Value a = c.in(0), b = c.in(1);
  if (c.integer("transA", 0)) a = transpose_matrix(a);
  if (c.integer("transB", 0)) b = transpose_matrix(b);
  Value y = ops::matmul(a, b);
  if (double alpha = c.real("alpha", 1); alpha != 1) y = y * alpha;
  if (!c.has(2)) return {y};
  Value bias = c.in(2);
  if (double beta = c.real("beta", 1); beta != 1) bias = bias * beta;
  return {y + broadcast_to(bias, y.shape())};
}

Values layer_norm_import(NodeContext& c) {
  if (c.wants(1) || c.wants(2)) c.fail("the outputs Mean and InvStdDev are not supported yet");
  Value x = c.in(0);
  int axis = normal_axis(c.integer("axis", -1), x.rank(), c.node().op);
  Dims tail(x.shape().dims.begin() + axis, x.shape().dims.end());
  auto shaped = [&](std::size_t input, double fallback) {
    Value v = c.has(input) ? c.in(input) : scalar(c.graph(), fallback, x.dtype());
    return broadcast_to(v, Shape(tail));
  };
  std::vector<Value> operands = {x, shaped(1, 1), shaped(2, 0)};
  return {ops::layer_norm(operands,
                          {{"axis", std::int64_t{axis}}, {"epsilon", c.real("epsilon", 1e-5)}})};
}

// Operand `input` of one direction, or zeros of the given shape.
Value of_direction(NodeContext& c, std::size_t input, int direction, const Shape& shape) {
  if (!c.has(input)) return broadcast_to(scalar(c.graph(), 0, c.in(0).dtype()), shape);
  return take_axis(c.in(input), 0, direction);
}

Value lstm_direction(NodeContext& c, int direction, bool reverse) {
  const Dim hidden = c.integer("hidden_size", 0), batch = c.in(0).shape()[1];
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

Values lstm_import(NodeContext& c) {
  if (c.integer("layout", 0)) c.fail("layout 1 is not supported yet");
  if (c.has(7)) c.fail("peepholes are not supported yet");
  if (c.node().find("activations") || c.node().find("clip") || c.integer("input_forget", 0))
    c.fail("activations, clip and input_forget are not supported yet");
  std::string_view way = c.text("direction", "forward");
  int directions = way == "bidirectional" ? 2 : 1;
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
    {"ReduceMax", reduce_import<ops::reduce_max>},
    {"ReduceMin", reduce_import<ops::reduce_min>},
    {"ReduceProd", reduce_import<ops::reduce_prod>},
    {"ReduceMean", reduce_mean},
    {"ArgMax", arg_import<ops::argmax>},
    {"ArgMin", arg_import<ops::argmin>},
    {"MatMul", matmul_import},
    {"Gemm", gemm_import},
    {"LayerNormalization", layer_norm_import},
    {"LSTM", lstm_import},
};

}  // namespace

std::span<const ImportEntry> network_imports() { return entries; }

}  // namespace hone::onnx
