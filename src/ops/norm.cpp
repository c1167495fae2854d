// Averages and normalisations over rows. f16 and bf16 are computed in f32 and rounded once. Any
// eval is an independent implementation that only tests use.
#include <algorithm>
#include <cmath>

#include "ops/check.h"
#include "ops/eval.h"
#include "ops/samples.h"

namespace hone {

namespace {

// Number of elements along the axes, as a scalar.
Value count_along(Value x, const Axes& axes, DType dtype) {
  Dim n = 1;
  for (int a : axes) n = n * x.shape()[a];
  return size_value(x.graph(), n, dtype);
}

Value mean_of(Value x, const Axes& axes) {
  return reduce_axes(ops::reduce_sum, x, axes) / count_along(x, axes, x.dtype());
}

// x minus its mean along the axes.
Value centred(Value x, const Axes& axes) {
  return x - broadcast_back(mean_of(x, axes), axes, x.shape());
}

Axes axes_from(int first, int rank) {
  Axes axes;
  for (int i = first; i < rank; ++i) axes.push_back(i);
  return axes;
}

// What a norm over the axes from attribute axis on computes on the way, in f32 at least. Its
// derivative asks for the same values: if both are computed, each is computed once.
struct RowNorm {
  Value normed;   // x, or x - mean, divided by `root`
  Value inverse;  // 1 / root, repeated over the rows
  Axes axes;      // of a row
  Shape row;

  RowNorm(const Call& c, bool is_centred) {
    const Value x = cast_to(c.operands[0], sum_dtype(c.type(0).dtype));
    const auto first = static_cast<int>(c.attrs.integer("axis"));
    axes = axes_from(first, x.rank());
    row.dims.assign(x.shape().dims.begin() + first, x.shape().dims.end());
    const Value d = is_centred ? centred(x, axes) : x;
    const Value root = ops::sqrt(mean_of(d * d, axes) + c.attrs.real("epsilon"));
    inverse = broadcast_back(1.0 / root, axes, x.shape());
    normed = d * inverse;
  }
  Value repeated(Value of_row) const { return broadcast_to(of_row, normed.shape()); }
};

Values expand_row_norm(const Call& c, bool is_centred) {
  const RowNorm n(c, is_centred);
  const auto operand = [&](std::size_t i) {
    return n.repeated(cast_to(c.operands[i], n.normed.dtype()));
  };
  Value y = n.normed * operand(1);
  if (c.operands.size() > 2) y = y + operand(2);
  return {cast_to(y, c.type(0).dtype)};
}

// dx = inverse * (d - mean(d) - normed * mean(d * normed)) for the derivative d of `normed` (Ba et
// al., "Layer normalization", 2016); without the first mean if x is not centred.
Values row_norm_grad(const Call& c, std::span<const Value> given, bool is_centred) {
  const RowNorm n(c, is_centred);
  const DType narrow = c.type(0).dtype;
  const Value dy = cast_to(given[0], n.normed.dtype());
  const Value d = dy * n.repeated(cast_to(c.operands[1], dy.dtype()));
  const auto mean_along = [&](Value v) {
    return broadcast_back(mean_of(v, n.axes), n.axes, dy.shape());
  };
  Value dx = d - n.normed * mean_along(d * n.normed);
  if (is_centred) dx = dx - mean_along(d);
  const auto of_row = [&](Value v) { return cast_to(sum_to(v, n.row), narrow); };
  Values out = {cast_to(n.inverse * dx, narrow), of_row(dy * n.normed)};
  if (c.operands.size() > 2) out.push_back(of_row(dy));
  return out;
}

std::vector<Type> infer_average(const Call& c) {
  expect_operands(c, 1);
  expect_dtype(c, 0, Accept::real);
  const Shape& x = c.shape(0);
  Axes axes = axes_attr(c, "axes", x.rank());
  Shape to;
  for (int i = 0; i < x.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) to.dims.push_back(x[i]);
  return {Type(c.type(0).dtype, std::move(to))};
}

std::vector<Type> infer_along_axis(const Call& c) {
  expect_operands(c, 1);
  expect_dtype(c, 0, Accept::real);
  axis_attr(c, "axis", c.type(0).rank());
  return {c.type(0)};
}

// Operands after the first have the shape of x from attribute axis on.
std::vector<Type> infer_row_norm(const Call& c, std::size_t least, std::size_t most) {
  expect_operands(c, least, most);
  expect_dtype(c, 0, Accept::real);
  expect_same_dtype(c, 0, c.operands.size());
  attr<double>(c, "epsilon");
  const Shape& x = c.shape(0);
  int axis = axis_attr(c, "axis", x.rank());
  for (std::size_t i = 1; i < c.operands.size(); ++i) {
    expect_rank(c, i, x.rank() - axis);
    for (int k = axis; k < x.rank(); ++k)
      equal_sizes(c, x[k], c.shape(i)[k - axis], "sizes of operands 0 and ", i, " at axis ", k);
  }
  return {c.type(0)};
}

Samples average_samples() {
  return {{{f32({2, 3, 4})}, {{"axes", Dims{1}}}},
          {{f32({2, 3, 4})}, {{"axes", Dims{0, 2}}}},
          {{f16({3, 40})}, {{"axes", Dims{1}}}},
          {{Type(DType::bf16, {2, 9})}, {{"axes", Dims{0, 1}}}},
          {{f32({2, 0})}, {{"axes", Dims{1}}}},
          {{f32({0, 2})}, {{"axes", Dims{1}}}},
          {{f32({sample_symbol(), 3})}, {{"axes", Dims{0}}}},
          {{f32({})}, {{"axes", Dims{}}}}};
}

Samples softmax_samples() {
  return {{{f32({2, 5})}, {{"axis", 1}}},
          {{f32({3, 4, 2})}, {{"axis", 1}}},
          {{f16({2, 30})}, {{"axis", 1}}},
          {{Type(DType::bf16, {4})}, {{"axis", 0}}},
          {{f32({0, 3})}, {{"axis", 1}}},
          {{f32({3, 0})}, {{"axis", 1}}},
          {{f32({sample_symbol(), 7})}, {{"axis", 1}}}};
}

Samples row_norm_samples(std::size_t parameters) {
  Samples out;
  auto add = [&](DType t, Dims x, int axis, double epsilon) {
    Sample s{{Type(t, Shape(x))}, {{"axis", axis}, {"epsilon", epsilon}}};
    Dims row(x.begin() + axis, x.end());
    s.operands.resize(1 + parameters, Type(t, Shape(row)));
    out.push_back(std::move(s));
  };
  add(DType::f32, {2, 8}, 1, 1e-5);
  add(DType::f32, {2, 3, 4}, 1, 1e-3);
  add(DType::f16, {3, 33}, 1, 1e-5);
  add(DType::bf16, {5}, 0, 1e-5);
  add(DType::f32, {sample_symbol(), 6}, 1, 1e-5);
  add(DType::f32, {0, 6}, 1, 1e-5);
  return out;
}

// Calls row(first, n) for each row of the trailing axes from attribute axis on.
template <class F>
std::vector<Wide> each_row(const Evaluation& e, F row) {
  Wide y = *e.inputs[0];
  std::int64_t n = 1;
  for (auto i = static_cast<std::size_t>(e.attrs.integer("axis")); i < y.dims.size(); ++i)
    n *= y.dims[i];
  for (std::int64_t first = 0; first < y.count(); first += n) row(y.reals.data() + first, n);
  return one_result(std::move(y));
}

std::vector<Wide> eval_layer_norm(const Evaluation& e) {
  return each_row(e, [&](double* x, std::int64_t n) {
    long double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += x[i];
    long double mean = sum / n;
    for (std::int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
    long double root = sqrtl(squares / n + e.attrs.real("epsilon"));
    for (std::int64_t i = 0; i < n; ++i) {
      auto k = static_cast<std::size_t>(i);
      x[i] = static_cast<double>((x[i] - mean) / root * e.inputs[1]->reals[k]);
      if (e.inputs.size() > 2) x[i] += e.inputs[2]->reals[k];
    }
  });
}

std::vector<Wide> eval_rms_norm(const Evaluation& e) {
  return each_row(e, [&](double* x, std::int64_t n) {
    long double squares = 0;
    for (std::int64_t i = 0; i < n; ++i) squares += static_cast<long double>(x[i]) * x[i];
    long double root = sqrtl(squares / n + e.attrs.real("epsilon"));
    for (std::int64_t i = 0; i < n; ++i)
      x[i] = static_cast<double>(x[i] / root * e.inputs[1]->reals[static_cast<std::size_t>(i)]);
  });
}

std::vector<Wide> eval_softmax(const Evaluation& e, bool logarithm) {
  Wide y = *e.inputs[0];
  AxisSplit s = split_at(y.dims, static_cast<int>(e.attrs.integer("axis")));
  for (std::int64_t r = 0; r < s.outer * s.inner; ++r) {
    double* x = y.reals.data() + r / s.inner * s.size * s.inner + r % s.inner;
    for (std::int64_t k = 0; k < s.size; ++k) {
      // 1 / sum over j of exp(x_j - x_k), for each k separately. If x_j is far above x_k the sum
      // overflows but its logarithm is small, so `top` is subtracted first.
      long double sum = 0, top = 0;
      const double* from = e.inputs[0]->reals.data() + (x - y.reals.data());
      const auto above = [&](std::int64_t j) -> long double {
        return from[j * s.inner] - from[k * s.inner];
      };
      for (std::int64_t j = 0; logarithm && j < s.size; ++j) top = std::max(top, above(j));
      for (std::int64_t j = 0; j < s.size; ++j) sum += expl(above(j) - top);
      x[k * s.inner] = static_cast<double>(logarithm ? -(top + logl(sum)) : 1 / sum);
    }
  }
  return one_result(std::move(y));
}

// Collects the elements of each result element, in the order of x, and passes them to `of`.
template <class F>
std::vector<Wide> each_group(const Evaluation& e, F of) {
  const Wide& x = *e.inputs[0];
  Axes axes = axes_of(e.attrs, "axes");
  Wide y(x.dtype, e.result_dims());
  std::vector<std::vector<double>> groups(y.reals.size());
  Sizes strides = row_major(x.dims);
  for (std::int64_t i = 0; i < x.count(); ++i) {
    std::int64_t group = 0;
    for (std::size_t k = 0; k < x.dims.size(); ++k)
      if (std::find(axes.begin(), axes.end(), static_cast<int>(k)) == axes.end())
        group = group * x.dims[k] + i / strides[k] % x.dims[k];
    groups[static_cast<std::size_t>(group)].push_back(x.reals[static_cast<std::size_t>(i)]);
  }
  for (std::size_t g = 0; g < groups.size(); ++g) y.reals[g] = of(groups[g]);
  return one_result(std::move(y));
}

double plain_mean(const std::vector<double>& group) {
  long double sum = 0;
  for (double x : group) sum += x;
  return static_cast<double>(sum / group.size());
}

// The sum over all pairs, which needs no mean: (sum of squares of differences) / (2 n^2).
double plain_variance(const std::vector<double>& group) {
  long double sum = 0;
  for (double x : group)
    for (double z : group)
      sum += (static_cast<long double>(x) - z) * (static_cast<long double>(x) - z);
  return static_cast<double>(sum / 2 / group.size() / group.size());
}

std::vector<Type> infer_batch_norm(const Call& c) {
  expect_operands(c, 5);
  expect_dtype(c, 0, Accept::real);
  expect_same_dtype(c, 0, 5);
  attr<double>(c, "epsilon");
  const Shape& x = c.shape(0);
  int axis = axis_attr(c, "axis", x.rank());
  for (std::size_t i = 1; i < 5; ++i) {
    expect_rank(c, i, 1);
    equal_sizes(c, x[axis], c.shape(i)[0], "channels of operands 0 and ", i);
  }
  return {c.type(0)};
}

Values expand_batch_norm(const Call& c) {
  DType wide = sum_dtype(c.type(0).dtype);
  Value x = cast_to(c.operands[0], wide);
  int axis = static_cast<int>(c.attrs.integer("axis"));
  auto channels = [&](Value v) {
    Dims dims(static_cast<std::size_t>(x.rank()), 1);
    dims[static_cast<std::size_t>(axis)] = x.shape()[axis];
    return broadcast_to(reshape_to(v, std::move(dims)), x.shape());
  };
  auto operand = [&](std::size_t i) { return cast_to(c.operands[i], wide); };
  Value scale = operand(1) / ops::sqrt(operand(4) + c.attrs.real("epsilon"));
  Value y = (x - channels(operand(3))) * channels(scale) + channels(operand(2));
  return {cast_to(y, c.type(0).dtype)};
}

std::vector<Wide> eval_batch_norm(const Evaluation& e) {
  Wide y = *e.inputs[0];
  AxisSplit s = split_at(y.dims, static_cast<int>(e.attrs.integer("axis")));
  for (std::size_t i = 0; i < y.reals.size(); ++i) {
    auto k = static_cast<std::size_t>(static_cast<std::int64_t>(i) / s.inner % s.size);
    y.reals[i] = (y.reals[i] - e.inputs[3]->reals[k]) /
                     std::sqrt(e.inputs[4]->reals[k] + e.attrs.real("epsilon")) *
                     e.inputs[1]->reals[k] +
                 e.inputs[2]->reals[k];
  }
  return one_result(std::move(y));
}

Values expand_softmax(const Call& c, bool logarithm) {
  Value x = cast_to(c.operands[0], sum_dtype(c.type(0).dtype));
  Axes axes = {static_cast<int>(c.attrs.integer("axis"))};
  // Subtracting the maximum keeps exp from overflowing.
  Value shifted = x - broadcast_back(reduce_axes(ops::reduce_max, x, axes), axes, x.shape());
  Value powers = ops::exp(shifted), sum = reduce_axes(ops::reduce_sum, powers, axes);
  // One division per row: the sum is at least 1 and at most the number of elements.
  Value y = logarithm ? shifted - broadcast_back(ops::log(sum), axes, x.shape())
                      : powers * broadcast_back(1.0 / sum, axes, x.shape());
  return {cast_to(y, c.type(0).dtype)};
}

// Of the result y only, so that nothing of x is computed again: y * (d - sum(d * y)) for softmax,
// and d - exp(y) * sum(d) for its logarithm.
Values softmax_grad(const Call& c, Value result, Value given, bool logarithm) {
  const DType wide = sum_dtype(result.dtype());
  const Value y = cast_to(result, wide), d = cast_to(given, wide);
  const Axes axes = {static_cast<int>(c.attrs.integer("axis"))};
  const Value sum =
      broadcast_back(reduce_axes(ops::reduce_sum, logarithm ? d : d * y, axes), axes, y.shape());
  return {cast_to(logarithm ? d - ops::exp(y) * sum : y * (d - sum), result.dtype())};
}

}  // namespace

constinit const Op ops::mean = {
    .name = "mean",
    .doc = "The mean over attribute axes, which disappear; NaN over nothing.",
    .kind = OpKind::reduction,
    .infer = infer_average,
    .expand = [](const Call& c) -> Values {
      Value x = cast_to(c.operands[0], sum_dtype(c.type(0).dtype));
      return {cast_to(mean_of(x, axes_of(c.attrs, "axes")), c.type(0).dtype)};
    },
    .eval = [](const Evaluation& e) { return each_group(e, plain_mean); },
    .samples = average_samples,
};

constinit const Op ops::variance = {
    .name = "variance",
    .doc = "The mean of squared distances to the mean, over attribute axes, which disappear.",
    .kind = OpKind::reduction,
    .infer = infer_average,
    .expand = [](const Call& c) -> Values {
      Axes axes = axes_of(c.attrs, "axes");
      Value d = centred(cast_to(c.operands[0], sum_dtype(c.type(0).dtype)), axes);
      return {cast_to(mean_of(d * d, axes), c.type(0).dtype)};
    },
    .eval = [](const Evaluation& e) { return each_group(e, plain_variance); },
    .samples = average_samples,
};

constinit const Op ops::softmax = {
    .name = "softmax",
    .doc = "exp(x) / sum(exp(x)) along attribute axis.",
    .infer = infer_along_axis,
    .grad = [](const Call& c, std::span<const Value> y,
               std::span<const Value> dy) { return softmax_grad(c, y[0], dy[0], false); },
    .expand = [](const Call& c) { return expand_softmax(c, false); },
    .eval = [](const Evaluation& e) { return eval_softmax(e, false); },
    .is_row = true,
    .samples = softmax_samples,
    .low = -5,
    .high = 5,
};

constinit const Op ops::log_softmax = {
    .name = "log_softmax",
    .doc = "x - log(sum(exp(x))) along attribute axis.",
    .infer = infer_along_axis,
    .grad = [](const Call& c, std::span<const Value> y,
               std::span<const Value> dy) { return softmax_grad(c, y[0], dy[0], true); },
    .expand = [](const Call& c) { return expand_softmax(c, true); },
    .eval = [](const Evaluation& e) { return eval_softmax(e, true); },
    .is_row = true,
    .samples = softmax_samples,
    .low = -5,
    .high = 5,
};

constinit const Op ops::layer_norm = {
    .name = "layer_norm",
    .doc =
        "(x - mean) / sqrt(variance + epsilon) * scale + bias over the axes from attribute axis "
        "on; scale and the optional bias have the shape of those axes.",
    .infer = [](const Call& c) { return infer_row_norm(c, 2, 3); },
    .grad = [](const Call& c, std::span<const Value>,
               std::span<const Value> dy) { return row_norm_grad(c, dy, true); },
    .expand = [](const Call& c) { return expand_row_norm(c, true); },
    .eval = eval_layer_norm,
    .is_row = true,
    .samples = [] { return joined(row_norm_samples(2), row_norm_samples(1)); },
};

constinit const Op ops::rms_norm = {
    .name = "rms_norm",
    .doc =
        "x / sqrt(mean(x^2) + epsilon) * scale over the axes from attribute axis on; scale has "
        "the shape of those axes.",
    .infer = [](const Call& c) { return infer_row_norm(c, 2, 2); },
    .grad = [](const Call& c, std::span<const Value>,
               std::span<const Value> dy) { return row_norm_grad(c, dy, false); },
    .expand = [](const Call& c) { return expand_row_norm(c, false); },
    .eval = eval_rms_norm,
    .is_row = true,
    .samples = [] { return row_norm_samples(1); },
};

constinit const Op ops::batch_norm = {
    .name = "batch_norm",
    .doc =
        "(x - mean) / sqrt(variance + epsilon) * scale + bias along attribute axis, for operands "
        "x, scale, bias, mean, variance: inference, with statistics given.",
    .kind = OpKind::other,
    .infer = infer_batch_norm,
    .expand = expand_batch_norm,
    .eval = eval_batch_norm,
    .samples = []() -> Samples {
      Samples out;
      auto add = [&](Type x, int axis) {
        Type row(x.dtype, {x.shape[axis]});
        out.push_back({{x, row, row, row, row}, {{"axis", axis}, {"epsilon", 1e-3}}});
      };
      add(f32({2, 3, 4, 4}), 1);
      add(f32({2, 4, 3}), 2);
      add(f16({2, 5}), 1);
      add(f32({sample_symbol(), 2}), 1);
      add(f32({0, 2}), 1);
      return out;
    },
    .low = 0.1,
    .high = 2,
};

}  // namespace hone
