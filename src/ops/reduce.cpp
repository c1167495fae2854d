// Reductions over whole axes and over windows, cumulative reductions, and sorting.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/check.h"
#include "ops/contents.h"
#include "ops/eval.h"
#include "ops/gradients.h"
#include "ops/samples.h"

namespace hone {

namespace {

std::vector<Type> infer_reduce(const Call& c, Accept accept) {
  expect_operands(c, 1);
  expect_dtype(c, 0, accept);
  const Shape& x = c.shape(0);
  Axes axes = axes_attr(c, "axes", x.rank());
  Shape to;
  for (int i = 0; i < x.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) to.dims.push_back(x[i]);
  return {Type(c.type(0).dtype, std::move(to))};
}
std::vector<Type> infer_numeric(const Call& c) { return infer_reduce(c, Accept::numeric); }
std::vector<Type> infer_boolean(const Call& c) { return infer_reduce(c, Accept::boolean); }

// The result and, for each operand axis, its stride in the result: 0 where the axis is reduced.
std::pair<Wide, Sizes> reduction(const Wide& x, const Axes& axes, Join how) {
  Sizes dims, strides(x.dims.size(), 0);
  auto is_kept = [&](std::size_t i) {
    return std::find(axes.begin(), axes.end(), static_cast<int>(i)) == axes.end();
  };
  for (std::size_t i = 0; i < x.dims.size(); ++i)
    if (is_kept(i)) dims.push_back(x.dims[i]);
  Sizes dense = row_major(dims);
  for (std::size_t i = 0, next = 0; i < x.dims.size(); ++i)
    if (is_kept(i)) strides[i] = dense[next++];
  return {starts(how, x.dtype, std::move(dims)), std::move(strides)};
}

bool rounds_joins(const Evaluation& e) {
  const Wide& x = *e.inputs[0];
  return e.round_sums && x.is_real() && x.dtype != DType::f64;
}
void round_to_f32(Wide& w, std::int64_t at) {
  double& x = w.reals[static_cast<std::size_t>(at)];
  x = static_cast<float>(x);
}

// A row that reduces to one element keeps it in a register.
template <Join how>
double join_row(double to, const double* from, std::int64_t step, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to = join(how, to, from[i * step]);
  return to;
}
double join_row(Join how, double to, const double* from, std::int64_t step, std::int64_t n) {
  switch (how) {
    case Join::sum:
      return join_row<Join::sum>(to, from, step, n);
    case Join::product:
      return join_row<Join::product>(to, from, step, n);
    case Join::maximum:
      return join_row<Join::maximum>(to, from, step, n);
    case Join::minimum:
      return join_row<Join::minimum>(to, from, step, n);
    case Join::set:
      break;
  }
  return join_row<Join::set>(to, from, step, n);
}

std::vector<Wide> eval_reduce(const Evaluation& e, Join how) {
  const Wide& x = *e.inputs[0];
  auto [y, to] = reduction(x, axes_of(e.attrs, "axes"), how);
  Sizes from = row_major(x.dims);
  const bool rounds = rounds_joins(e);
  Rows<2>(x.dims, {to, from}).each({0, 0}, [&](auto& at, auto& step, std::int64_t n) {
    if (x.is_real() && step[0] == 0 && !rounds) {
      double& one = y.reals[static_cast<std::size_t>(at[0])];
      one = join_row(how, one, x.reals.data() + at[1], step[1], n);
      return;
    }
    for (std::int64_t i = 0; i < n; ++i) {
      join_element(how, y, at[0] + i * step[0], x, at[1] + i * step[1]);
      if (rounds) round_to_f32(y, at[0] + i * step[0]);
    }
  });
  return one_result(std::move(y));
}

Samples reduce_samples(const std::vector<DType>& dtypes) {
  Samples out;
  for (DType t : dtypes) {
    out.push_back({{Type(t, {2, 3, 4})}, {{"axes", Dims{1}}}});
    out.push_back({{Type(t, {2, 3, 4})}, {{"axes", Dims{0, 2}}}});
    out.push_back({{Type(t, {5})}, {{"axes", Dims{0}}}});
  }
  DType t = dtypes[0];
  out.push_back({{Type(t, {2, 0})}, {{"axes", Dims{1}}}});
  out.push_back({{Type(t, {0, 3})}, {{"axes", Dims{1}}}});
  out.push_back({{Type(t, {})}, {{"axes", Dims{}}}});
  out.push_back({{Type(t, {3, sample_symbol()})}, {{"axes", Dims{1}}}});
  return out;
}
Samples numeric_samples() {
  return reduce_samples({DType::f32, DType::f16, DType::bf16, DType::i64, DType::i8, DType::u64});
}
Samples boolean_samples() { return reduce_samples({DType::b1}); }

std::vector<Type> infer_arg(const Call& c) {
  expect_operands(c, 1);
  expect_dtype(c, 0, Accept::numeric);
  Shape x = c.shape(0);
  int axis = axis_attr(c, "axis", x.rank());
  DType dtype = attr<DType>(c, "dtype");
  if (dtype != DType::i64 && dtype != DType::i32)
    throw UserError(c.op.name, ": attribute 'dtype' is ", dtype, ", expected i64 or i32");
  expect_at_most(c, 1, x[axis], "axis ", axis, " is empty, expected at least one element");
  x.dims.erase(x.dims.begin() + axis);
  return {Type(dtype, std::move(x))};
}

// NaN comes before every number in both directions, so it is the extreme.
bool before(const Wide& x, std::int64_t a, std::int64_t b, bool larger) {
  auto p = static_cast<std::size_t>(a), q = static_cast<std::size_t>(b);
  if (!x.is_real())
    return larger ? integer_less(x.dtype, x.integers[q], x.integers[p])
                  : integer_less(x.dtype, x.integers[p], x.integers[q]);
  double u = x.reals[p], v = x.reals[q];
  if (std::isnan(u) || std::isnan(v)) return std::isnan(u) && !std::isnan(v);
  return larger ? u > v : u < v;
}

std::vector<Wide> eval_arg(const Evaluation& e, bool larger) {
  const Wide& x = *e.inputs[0];
  AxisSplit s = split_at(x.dims, static_cast<int>(e.attrs.integer("axis")));
  Sizes dims = x.dims;
  dims.erase(dims.begin() + e.attrs.integer("axis"));
  Wide y(e.attrs.get<DType>("dtype"), std::move(dims));
  for (std::int64_t r = 0; r < s.outer * s.inner; ++r) {
    std::int64_t first = r / s.inner * s.size * s.inner + r % s.inner, best = 0;
    for (std::int64_t k = 1; k < s.size; ++k)
      if (before(x, first + k * s.inner, first + best * s.inner, larger)) best = k;
    y.integers[static_cast<std::size_t>(r)] = best;
  }
  return one_result(std::move(y));
}

Samples arg_samples() {
  return {{{f32({2, 5})}, {{"axis", 1}, {"dtype", DType::i64}}},
          {{f16({3, 4, 2})}, {{"axis", 1}, {"dtype", DType::i32}}},
          {{i64({7})}, {{"axis", 0}, {"dtype", DType::i64}}},
          {{f32({0, 3})}, {{"axis", 1}, {"dtype", DType::i64}}},
          {{f32({sample_symbol(), 2})}, {{"axis", 0}, {"dtype", DType::i64}}}};
}

std::vector<Type> infer_cumulative(const Call& c) {
  expect_operands(c, 1);
  expect_dtype(c, 0, Accept::numeric);
  axis_attr(c, "axis", c.shape(0).rank());
  word_attr(c, "kind", {"sum", "prod", "max", "min"});
  integer_attr(c, "exclusive", 0);
  integer_attr(c, "reverse", 0);
  return {c.type(0)};
}

std::vector<Wide> eval_cumulative(const Evaluation& e) {
  const Wide& x = *e.inputs[0];
  Join how = join_of(e.attrs.get<std::string>("kind"));
  bool exclusive = e.attrs.integer("exclusive"), reverse = e.attrs.integer("reverse");
  const bool rounds = rounds_joins(e);
  Wide y(x.dtype, x.dims), total = starts(how, x.dtype, {1});
  const Wide start = total;
  AxisSplit s = split_at(x.dims, static_cast<int>(e.attrs.integer("axis")));
  for (std::int64_t r = 0; r < s.outer * s.inner; ++r) {
    std::int64_t first = r / s.inner * s.size * s.inner + r % s.inner;
    total = start;
    for (std::int64_t k = 0; k < s.size; ++k) {
      std::int64_t at = first + (reverse ? s.size - 1 - k : k) * s.inner;
      if (exclusive) join_element(Join::set, y, at, total, 0);
      join_element(how, total, 0, x, at);
      if (rounds) round_to_f32(total, 0);
      if (!exclusive) join_element(Join::set, y, at, total, 0);
    }
  }
  return one_result(std::move(y));
}

std::vector<Type> infer_sort(const Call& c) {
  expect_operands(c, 1);
  expect_dtype(c, 0, Accept::numeric);
  axis_attr(c, "axis", c.shape(0).rank());
  integer_attr(c, "descending", 0);
  Shape shape = c.shape(0);
  if (c.attrs.has("count")) {
    Dim& size = shape.dims[static_cast<std::size_t>(c.attrs.integer("axis"))];
    const Dim count = sizes_attr(c, "count", 1, 0)[0];
    expect_at_most(c, count, size, "attribute 'count' is ", count, ", expected at most ", size,
                   ", the size of the axis");
    size = count;
  }
  return {Type(c.type(0).dtype, shape), i64(shape)};
}

std::vector<Wide> eval_sort(const Evaluation& e) {
  const Wide& x = *e.inputs[0];
  bool descending = e.attrs.integer("descending");
  const auto axis = static_cast<std::size_t>(e.attrs.integer("axis"));
  Sizes dims = x.dims;
  if (e.attrs.has("count")) dims[axis] = e.sizes(e.attrs.dims("count"))[0];
  Wide y(x.dtype, dims), index(DType::i64, dims);
  AxisSplit s = split_at(x.dims, static_cast<int>(axis));
  std::vector<std::int64_t> order(static_cast<std::size_t>(s.size));
  for (std::int64_t r = 0; r < s.outer * s.inner; ++r) {
    std::int64_t first = r / s.inner * s.size * s.inner + r % s.inner;
    std::iota(order.begin(), order.end(), 0);
    // Ascending with NaN last: p comes before q if q would come before p in descending order.
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t p, std::int64_t q) {
      return descending ? before(x, first + p * s.inner, first + q * s.inner, true)
                        : before(x, first + q * s.inner, first + p * s.inner, true);
    });
    const std::int64_t to = r / s.inner * dims[axis] * s.inner + r % s.inner;
    for (std::int64_t k = 0; k < dims[axis]; ++k) {
      std::int64_t from = order[static_cast<std::size_t>(k)], at = to + k * s.inner;
      join_element(Join::set, y, at, x, first + from * s.inner);
      index.integers[static_cast<std::size_t>(at)] = from;
    }
  }
  return {std::move(y), std::move(index)};
}

}  // namespace

constinit const Op ops::reduce_sum = {
    .name = "reduce_sum",
    .doc =
        "The sum over attribute axes, which disappear. Narrow floats are summed in f32 and "
        "rounded once; integers wrap; the empty sum is 0.",
    .kind = OpKind::reduction,
    .infer = infer_numeric,
    .grad = grads::reduce_sum,
    .eval = [](const Evaluation& e) { return eval_reduce(e, Join::sum); },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_reduced(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return x[0] + x[1]; });
        },
    .samples = numeric_samples,
};

constinit const Op ops::reduce_prod = {
    .name = "reduce_prod",
    .doc =
        "The product over attribute axes, which disappear. Narrow floats are multiplied in f32 "
        "and rounded once; integers wrap; the empty product is 1.",
    .kind = OpKind::reduction,
    .infer = infer_numeric,
    .grad = grads::reduce_prod,
    .eval = [](const Evaluation& e) { return eval_reduce(e, Join::product); },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_reduced(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return x[0] * x[1]; });
        },
    .samples = numeric_samples,
};

constinit const Op ops::reduce_max = {
    .name = "reduce_max",
    .doc =
        "The maximum over attribute axes, which disappear; NaN if any is. Over nothing: the "
        "lowest value, -infinity for floats.",
    .kind = OpKind::reduction,
    .infer = infer_numeric,
    .grad = grads::reduce_extreme,
    .eval = [](const Evaluation& e) { return eval_reduce(e, Join::maximum); },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_reduced(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return max(x[0], x[1]); });
        },
    .ulps = 0,
    .samples = numeric_samples,
};

constinit const Op ops::reduce_min = {
    .name = "reduce_min",
    .doc =
        "The minimum over attribute axes, which disappear; NaN if any is. Over nothing: the "
        "highest value, infinity for floats.",
    .kind = OpKind::reduction,
    .infer = infer_numeric,
    .grad = grads::reduce_extreme,
    .eval = [](const Evaluation& e) { return eval_reduce(e, Join::minimum); },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_reduced(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return min(x[0], x[1]); });
        },
    .ulps = 0,
    .samples = numeric_samples,
};

constinit const Op ops::reduce_and = {
    .name = "reduce_and",
    .doc = "Whether all of a bool value hold, over attribute axes, which disappear; true of none.",
    .kind = OpKind::reduction,
    .infer = infer_boolean,
    .eval = [](const Evaluation& e) { return eval_reduce(e, Join::minimum); },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_reduced(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return min(x[0], x[1]); });
        },
    .rising = true,
    .ulps = 0,
    .samples = boolean_samples,
};

constinit const Op ops::reduce_or = {
    .name = "reduce_or",
    .doc =
        "Whether any of a bool value holds, over attribute axes, which disappear; false of "
        "none.",
    .kind = OpKind::reduction,
    .infer = infer_boolean,
    .eval = [](const Evaluation& e) { return eval_reduce(e, Join::maximum); },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_reduced(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return max(x[0], x[1]); });
        },
    .rising = true,
    .ulps = 0,
    .samples = boolean_samples,
};

constinit const Op ops::argmax = {
    .name = "argmax",
    .doc =
        "The position (attribute dtype, i64 or i32) of the maximum along attribute axis, which "
        "disappears: the first of equals, the first NaN if there is one. The axis must not be "
        "empty.",
    .kind = OpKind::reduction,
    .infer = infer_arg,
    .eval = [](const Evaluation& e) { return eval_arg(e, true); },
    .contents = contents_by_value,
    .ulps = 0,
    .samples = arg_samples,
};

constinit const Op ops::argmin = {
    .name = "argmin",
    .doc =
        "The position (attribute dtype, i64 or i32) of the minimum along attribute axis, which "
        "disappears: the first of equals, the first NaN if there is one. The axis must not be "
        "empty.",
    .kind = OpKind::reduction,
    .infer = infer_arg,
    .eval = [](const Evaluation& e) { return eval_arg(e, false); },
    .contents = contents_by_value,
    .ulps = 0,
    .samples = arg_samples,
};

constinit const Op ops::cumulative = {
    .name = "cumulative",
    .doc =
        "Element k along attribute axis joins elements 0 to k; with exclusive = 1, those before "
        "k; with reverse = 1, from the end. Attribute kind: sum, prod, max, min.",
    .kind = OpKind::other,
    .infer = infer_cumulative,
    .grad = grads::cumulative,
    .eval = eval_cumulative,
    .samples = []() -> Samples {
      auto by = [](int axis, std::string kind, int exclusive, int reverse) -> Attrs {
        return {{"axis", axis},
                {"kind", std::move(kind)},
                {"exclusive", exclusive},
                {"reverse", reverse}};
      };
      return {{{f32({2, 5})}, by(1, "sum", 0, 0)},
              {{f32({4, 3})}, by(0, "sum", 1, 0)},
              {{f16({6})}, by(0, "max", 0, 1)},
              {{i64({2, 3, 2})}, by(1, "prod", 1, 1)},
              {{f32({0, 2})}, by(0, "sum", 0, 0)},
              {{i32({5})}, by(0, "min", 0, 0)},
              {{f32({sample_symbol()})}, by(0, "sum", 0, 0)}};
    },
};

constinit const Op ops::sort = {
    .name = "sort",
    .doc =
        "Two results: x in order along attribute axis, and the positions (i64) it came from. "
        "Stable; descending = 0 or 1; NaN counts as the largest. With count = [k], the first k.",
    .kind = OpKind::other,
    .infer = infer_sort,
    .grad = grads::sort,
    .eval = eval_sort,
    .ulps = 0,
    .samples = []() -> Samples {
      return {{{f32({2, 7})}, {{"axis", 1}, {"descending", 0}}},
              {{f16({5, 2})}, {{"axis", 0}, {"descending", 1}}},
              {{i64({9})}, {{"axis", 0}, {"descending", 0}}},
              {{f32({3, 8, 2})}, {{"axis", 1}, {"descending", 1}, {"count", Dims{3}}}},
              {{f32({sample_symbol()})}, {{"axis", 0}, {"descending", 0}, {"count", Dims{1}}}},
              {{f32({0})}, {{"axis", 0}, {"descending", 0}}}};
    },
};

}  // namespace hone
