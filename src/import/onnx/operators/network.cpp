#include <algorithm>
#include <limits>
#include <tuple>

#include "import/common/build.h"
#include "import/onnx/node/broadcast.h"
#include "import/onnx/node/context.h"
#include "import/onnx/node/open.h"
#include "import/onnx/operators/list.h"

namespace hone::onnx {

namespace {

// Scale and bias, and the statistics, may have dtypes other than that of x.
Value normalized(Values operands, double epsilon) {
  const DType to = operands[0].dtype();
  auto differs = [&](Value v) { return v.dtype() != to; };
  auto is_f64 = [](Value v) { return v.dtype() == DType::f64; };
  if (std::ranges::any_of(operands, differs)) {
    const DType common = std::ranges::any_of(operands, is_f64) ? DType::f64 : DType::f32;
    for (Value& v : operands) v = cast_to(v, common);
  }
  return cast_to(ops::batch_norm(operands, {{"axis", std::int64_t{1}}, {"epsilon", epsilon}}), to);
}

// Normalises with the statistics of the batch and moves the running ones towards them. Results: y,
// the running mean and variance, and those of the batch.
Values batch_norm_training(NodeContext& c, Value x, double epsilon) {
  const double momentum = c.real("momentum", 0.9);
  Axes axes = {0};
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  const DType wide = sum_dtype(x.dtype());
  Value mean = mean_over(cast_to(x, wide), axes, false);
  Value variance = ops::variance(cast_to(x, wide), {{"axes", dims_of_axes(axes)}});
  const auto of_batch = [&](std::size_t input, Value v) { return cast_to(v, c.in(input).dtype()); };
  const auto moved = [&](std::size_t input, Value batch) {
    const bool is_f64 = c.in(input).dtype() == DType::f64;
    const DType common = is_f64 ? DType::f64 : batch.dtype();
    const Value running = cast_to(flatten(c.in(input)), common) * momentum;
    return of_batch(input, running + cast_to(batch, common) * (1 - momentum));
  };
  // The statistics are not rounded to the dtype of the running ones, since epsilon is small.
  const Values operands = {x, flatten(c.in(1)), flatten(c.in(2)), mean, variance};
  return {normalized(operands, epsilon), moved(3, mean), moved(4, variance), of_batch(3, mean),
          of_batch(4, variance)};
}

// Before opset 14 the outputs select the mode, and before opset 7 `is_test` as well.
bool is_training(NodeContext& c) {
  const bool training = c.flag("training_mode"), test = c.flag("is_test");
  if (c.opset() >= 14) return training;
  return !test && (c.wants(1) || c.wants(2) || c.wants(3) || c.wants(4));
}

Values batch_norm_import(NodeContext& c) {
  c.ignore("consumed_inputs");
  const double epsilon = c.real("epsilon", 1e-5);
  Value x = c.in(0);
  if (x.rank() == 1) x = unsqueeze(x, {1});  // one channel
  // Without `spatial` each position has statistics of its own: positions are channels.
  if (!c.flag("spatial", true))
    x = reshape_to(x, {x.shape()[0], product(std::span(x.shape().dims).subspan(1))});
  Values out;
  if (is_training(c)) {
    out = batch_norm_training(c, x, epsilon);
    if (c.opset() >= 14) out.resize(3);
    for (std::size_t i = 1; i < out.size(); ++i) out[i] = reshape_to(out[i], c.in(3).shape().dims);
  } else {
    c.ignore("momentum");
    Values operands = {x};
    for (std::size_t i = 1; i < 5; ++i) operands.push_back(flatten(c.in(i)));
    out = {normalized(operands, epsilon)};
  }
  out[0] = reshape_to(out[0], c.in(0).shape().dims);
  return out;
}

// Before opset 13 the axes from `axis` on are treated as one.
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

// Reduces `before`(x) along axes given by attribute or operand, and passes the result to `after`.
// No axes means all, unless noop_with_empty_axes: then only `before` and `after` are applied.
template <class Before, class Reduce, class After>
Values reduced(NodeContext& c, Before before, Reduce reduce, After after) {
  const bool keep = c.flag("keepdims", true), noop = c.flag("noop_with_empty_axes");
  const auto given = c.integers("axes");
  const Value x = before(c.in(0));
  const bool by_operand = !given && c.has(1) && c.in(1).shape().count() != Dim(0);
  const auto along = [&](const Axes& a) {
    if (a.empty() && noop) return after(x);
    return after(reduce(x, a.empty() ? all_axes(x.rank()) : a, keep));
  };
  if (by_operand) return {over_axes(c, 1, x.rank(), along)};
  return {along(given ? c.axes(*given, x.rank()) : Axes{})};
}

Value as_it_is(Value x) { return x; }

template <const Op& op>
Value reduce_by(Value x, const Axes& axes, bool keep) {
  return reduce_axes(op, x, axes, keep);
}

// For bools the extremes are and and or.
template <const Op& op, const Op& of_bools>
Values reduce_extreme(NodeContext& c) {
  if (c.in(0).dtype() == DType::b1) return reduced(c, as_it_is, reduce_by<of_bools>, as_it_is);
  return reduced(c, as_it_is, reduce_by<op>, as_it_is);
}

template <const Op& op>
Values reduce_import(NodeContext& c) {
  return reduced(c, as_it_is, reduce_by<op>, as_it_is);
}

// Converts integers to f64 and back, truncated, as the reference functions of these operators do.
template <class Reduce, class After>
Values reduced_in_floats(NodeContext& c, Reduce reduce, After after) {
  const DType dtype = c.in(0).dtype();
  if (is_float(dtype)) return reduced(c, as_it_is, reduce, after);
  return reduced(
      c, [](Value x) { return cast_to(x, DType::f64); }, reduce,
      [&](Value y) { return cast_to(after(y), dtype); });
}

Values reduce_mean(NodeContext& c) { return reduced_in_floats(c, mean_over, as_it_is); }

Values reduce_sum_square(NodeContext& c) {
  return reduced(c, [](Value x) { return x * x; }, reduce_by<ops::reduce_sum>, as_it_is);
}

Values reduce_l1(NodeContext& c) {
  return reduced(c, [](Value x) { return ops::abs(x); }, reduce_by<ops::reduce_sum>, as_it_is);
}

Values reduce_l2(NodeContext& c) {
  const DType dtype = c.in(0).dtype();
  const DType real = is_float(dtype) ? dtype : DType::f64;
  return reduced(
      c, [&](Value x) { return cast_to(x, real) * cast_to(x, real); }, reduce_by<ops::reduce_sum>,
      [&](Value y) { return cast_to(ops::sqrt(y), dtype); });
}

Values reduce_log_sum(NodeContext& c) {
  return reduced_in_floats(c, reduce_by<ops::reduce_sum>, [](Value y) { return ops::log(y); });
}

// Subtracts the largest element so that no exponential overflows; an infinite one is not
// subtracted, because infinity - infinity is NaN.
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

Values reduce_log_sum_exp(NodeContext& c) { return reduced_in_floats(c, log_sum_exp, as_it_is); }

// The last of equal elements is the first from the back.
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

Values matmul_import(NodeContext& c) {
  auto [a, b] = of_one_depth(c.in(0), c.in(1));
  std::tie(a, b) = broadcast_leading(c, a, b, 2);
  return {ops::matmul(a, b)};
}

Values gemm_import(NodeContext& c) {
  c.ignore("broadcast");  // before opset 7; newer opsets always broadcast
  Value a = c.in(0), b = c.in(1);
  if (a.rank() != 2 || b.rank() != 2)
    c.fail(cat("inputs 'A' and 'B' are ", a.type(), " and ", b.type(), ", expected two matrices"));
  if (c.flag("transA")) a = transpose_matrix(a);
  if (c.flag("transB")) b = transpose_matrix(b);
  const double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  std::tie(a, b) = of_one_depth(a, b);
  Value y = ops::matmul(a, b);
  if (alpha != 1) y = y * alpha;
  if (!c.has(2)) return {y};
  Value bias = c.in(2);
  if (beta != 1) bias = bias * beta;
  return {y + broadcast_operand_to(c, bias, y.shape())};
}

// Scale or bias of a norm over the axes from `axis` on.
Value norm_operand(NodeContext& c, std::size_t input, double fallback, int axis) {
  const Shape& x = c.in(0).shape();
  Dims tail(x.dims.begin() + axis, x.dims.end());
  Value v = c.has(input) ? c.in(input) : scalar(c.graph(), fallback, c.in(0).dtype());
  return broadcast_to(v, Shape(std::move(tail)));
}

void check_stash(NodeContext& c) {
  if (c.integer("stash_type", 1) != 1)
    c.unsupported(
        cat("attribute 'stash_type' is ", c.integer("stash_type", 1), ", expected 1 (f32)"));
}

// The mean and 1 / sqrt(variance + epsilon) of each row, in f32, with the axes kept as size 1.
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
  const double epsilon = c.real("epsilon", 1e-5);
  Value y = ops::rms_norm(Values{x, norm_operand(c, 1, 1, axis)},
                          {{"axis", std::int64_t{axis}}, {"epsilon", epsilon}});
  if (!c.wants(1)) return {y};
  Axes axes;
  for (int i = axis; i < x.rank(); ++i) axes.push_back(i);
  Value wide = cast_to(x, DType::f32);
  return {y, ops::rsqrt(mean_over(wide * wide, axes, true) + epsilon)};
}

// Normalises each group of channels of each sample, then applies scale and bias by channel.
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
  // Opset 18 has one number per group.
  auto by_channel = [&](std::size_t input) {
    Value v = flatten(c.in(input));
    if (c.opset() < 21 && c.op() == "GroupNormalization")
      v = reshape_to(
          broadcast_to(reshape_to(v, {groups, 1}), {groups, floor_div(shape[1], groups)}),
          {shape[1]});
    return along_channels(v, shape);
  };
  return y * by_channel(1) + by_channel(2);
}

void check_channels(NodeContext& c) {
  if (c.in(0).rank() < 2)
    c.fail(
        cat("input 0 is ", c.in(0).type(), ", expected at least two axes, [batch, channels, ...]"));
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
  if (groups < 1) c.bad_attribute("num_groups", groups, "a positive integer");
  return {grouped_norm(c, groups, c.real("epsilon", 1e-5))};
}

constexpr ImportEntry network_table[] = {
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
    {"LayerNormalization", layer_norm_import},  // ONNX Runtime also writes it before opset 17
    {"RMSNormalization", rms_norm_import, 23},
    {"SimplifiedLayerNormalization", rms_norm_import},  // from ONNX Runtime, in this domain
    {"InstanceNormalization", instance_norm},
    {"GroupNormalization", group_norm, 18},
    {"ReduceSumSquare", reduce_sum_square},
    {"ReduceL1", reduce_l1},
    {"ReduceL2", reduce_l2},
    {"ReduceLogSum", reduce_log_sum},
    {"ReduceLogSumExp", reduce_log_sum_exp},
};

}  // namespace

std::span<const ImportEntry> network_imports() { return network_table; }

}  // namespace hone::onnx
