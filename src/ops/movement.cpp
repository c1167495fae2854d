// Movement without indices: each result element is one operand element or a constant, at a position
// determined by attributes.
#include "ops/check.h"
#include "ops/contents.h"
#include "ops/eval.h"
#include "ops/gradients.h"
#include "ops/samples.h"

namespace hone {

namespace {

std::vector<Type> infer_reshape(const Call& c) {
  expect_operands(c, 1);
  const Dims& dims = attr<Dims>(c, "shape");
  Shape to(sizes_attr(c, "shape", dims.size(), 0));
  Dim have = c.shape(0).count(), need = to.count();
  if (have != need)
    c.graph.require_equal(have, need,
                          cat("reshape: ", c.type(0), " has ", have, " elements, ", to, " needs ",
                              need, "; the numbers must be equal"));
  return {Type(c.type(0).dtype, std::move(to))};
}

std::vector<Type> infer_transpose(const Call& c) {
  expect_operands(c, 1);
  const Shape& x = c.shape(0);
  const Dims& perm = attr<Dims>(c, "perm");
  std::vector<bool> seen(static_cast<std::size_t>(x.rank()), false);
  Shape to;
  for (const Dim& d : perm) {
    bool fits = d.is_number() && d.number() >= 0 && d.number() < x.rank() &&
                !seen[static_cast<std::size_t>(d.number())];
    if (!fits) break;
    seen[static_cast<std::size_t>(d.number())] = true;
    to.dims.push_back(x[static_cast<int>(d.number())]);
  }
  if (to.rank() != x.rank() || to.dims.size() != perm.size())
    throw UserError("transpose: attribute 'perm' is ", Shape(perm), ", expected each axis of ",
                    c.type(0), " once");
  return {Type(c.type(0).dtype, std::move(to))};
}

std::vector<Wide> eval_transpose(const Evaluation& e) {
  const Wide& x = *e.inputs[0];
  Sizes strides = row_major(x.dims), dims, from;
  for (std::int64_t p : e.attrs.integers("perm")) {
    dims.push_back(x.dims[static_cast<std::size_t>(p)]);
    from.push_back(strides[static_cast<std::size_t>(p)]);
  }
  return one_result(take_box(x, {0, from}, dims));
}

std::vector<Type> infer_broadcast(const Call& c) {
  expect_operands(c, 1);
  const Dims& dims = attr<Dims>(c, "shape");
  Shape to(sizes_attr(c, "shape", dims.size(), 0));
  const Shape& x = c.shape(0);
  if (x.rank() > to.rank())
    throw UserError("broadcast: the operand is ", c.type(0), ", expected at most as many axes as ",
                    to, "; reshape it first");
  for (int i = 1; i <= x.rank(); ++i)
    if (x[-i] != to[-i] && x[-i] != Dim(1))
      c.graph.require_equal(
          x[-i], to[-i],
          cat("broadcast: ", c.type(0), " does not fit in ", to, ": ", x[-i], " against ", to[-i],
              " at axis -", i, "; only axes of size 1 are repeated"));
  return {Type(c.type(0).dtype, std::move(to))};
}

std::vector<Wide> eval_broadcast(const Evaluation& e) {
  const Wide& x = *e.inputs[0];
  Sizes dims = e.result_dims(), strides = row_major(x.dims), from(dims.size(), 0);
  std::size_t extra = dims.size() - x.dims.size();
  for (std::size_t i = 0; i < x.dims.size(); ++i)
    if (x.dims[i] == dims[extra + i]) from[extra + i] = strides[i];
  return one_result(take_box(x, {0, from}, dims));
}

std::vector<Type> infer_slice(const Call& c) {
  expect_operands(c, 1);
  const Shape& x = c.shape(0);
  auto rank = static_cast<std::size_t>(x.rank());
  const Dims& starts = sizes_attr(c, "starts", rank, 0);
  const Dims& sizes = sizes_attr(c, "sizes", rank, 0);
  std::vector<std::int64_t> steps = numbers_attr(c, "steps", rank, 1);
  for (std::size_t i = 0; i < rank; ++i)
    expect_at_most(c, starts[i] + (sizes[i] - Dim(1)) * Dim(steps[i]) + Dim(1), x.dims[i],
                   "the slice at axis ", i, " ends at ",
                   starts[i] + (sizes[i] - Dim(1)) * Dim(steps[i]) + Dim(1), ", expected at most ",
                   x.dims[i]);
  return {Type(c.type(0).dtype, Shape(sizes))};
}

std::vector<Wide> eval_slice(const Evaluation& e) {
  const Wide& x = *e.inputs[0];
  Sizes strides = row_major(x.dims), starts = e.sizes(e.attrs.dims("starts")),
        steps = e.sizes(e.attrs.dims("steps"));
  Box from;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    from.base += starts[i] * strides[i];
    from.strides.push_back(steps[i] * strides[i]);
  }
  return one_result(take_box(x, from, e.sizes(e.attrs.dims("sizes"))));
}

std::vector<Type> infer_pad(const Call& c) {
  expect_operands(c, 2);
  expect_same_dtype(c, 0, 2);
  expect_rank(c, 1, 0);
  Shape to = c.shape(0);
  auto rank = static_cast<std::size_t>(to.rank());
  const Dims &low = sizes_attr(c, "low", rank, 0), &high = sizes_attr(c, "high", rank, 0);
  for (std::size_t i = 0; i < rank; ++i) to.dims[i] = to.dims[i] + low[i] + high[i];
  return {Type(c.type(0).dtype, std::move(to))};
}

std::vector<Wide> eval_pad(const Evaluation& e) {
  const Wide& x = *e.inputs[0];
  Sizes low = e.sizes(e.attrs.dims("low"));
  Wide y(x.dtype, e.result_dims());
  fill(y, *e.inputs[1]);
  Box to{0, row_major(y.dims)};
  for (std::size_t i = 0; i < low.size(); ++i) to.base += low[i] * to.strides[i];
  copy_box(y, to, x, {0, row_major(x.dims)}, x.dims);
  return one_result(std::move(y));
}

std::vector<Type> infer_concat(const Call& c) {
  expect_operands(c, 1, ~std::size_t{0});
  expect_same_dtype(c, 0, c.operands.size());
  Shape to = c.shape(0);
  int axis = axis_attr(c, "axis", to.rank());
  for (std::size_t i = 1; i < c.operands.size(); ++i) {
    expect_rank(c, i, to.rank());
    for (int k = 0; k < to.rank(); ++k)
      if (k == axis)
        to[k] = to[k] + c.shape(i)[k];
      else if (to[k] != c.shape(i)[k])
        to[k] = equal_sizes(c, to[k], c.shape(i)[k], "sizes at axis ", k);
  }
  return {Type(c.type(0).dtype, std::move(to))};
}

std::vector<Wide> eval_concat(const Evaluation& e) {
  auto axis = static_cast<std::size_t>(e.attrs.integer("axis"));
  Wide y(e.inputs[0]->dtype, e.result_dims());
  Box to{0, row_major(y.dims)};
  for (const Wide* x : e.inputs) {
    copy_box(y, to, *x, {0, row_major(x->dims)}, x->dims);
    to.base += x->dims[axis] * to.strides[axis];
  }
  return one_result(std::move(y));
}

std::vector<Type> infer_reverse(const Call& c) {
  expect_operands(c, 1);
  axes_attr(c, "axes", c.shape(0).rank());
  return {c.type(0)};
}

std::vector<Wide> eval_reverse(const Evaluation& e) {
  const Wide& x = *e.inputs[0];
  Box from{0, row_major(x.dims)};
  for (std::int64_t a : e.attrs.integers("axes")) {
    auto k = static_cast<std::size_t>(a);
    from.base += (x.dims[k] - 1) * from.strides[k];
    from.strides[k] = -from.strides[k];
  }
  return one_result(take_box(x, from, x.dims));
}

}  // namespace

constinit const Op ops::reshape = {
    .name = "reshape",
    .doc = "The same elements, in row-major order, in attribute shape.",
    .kind = OpKind::movement,
    .infer = infer_reshape,
    .grad = grads::reshape,
    .eval = [](const Evaluation& e) -> std::vector<Wide> {
      Wide y = *e.inputs[0];
      y.dims = e.result_dims();
      return one_result(std::move(y));
    },
    .contents = contents_moved,
    .rising = true,
    .ulps = 0,
    .samples = []() -> Samples {
      Dim n = sample_symbol();
      return {{{f32({2, 3})}, {{"shape", Dims{3, 1, 2}}}},
              {{f32({})}, {{"shape", Dims{1, 1}}}},
              {{f16({0, 3})}, {{"shape", Dims{5, 0}}}},
              {{i64({n, 4})}, {{"shape", Dims{n * Dim(2), 2}}}}};
    },
};

constinit const Op ops::transpose = {
    .name = "transpose",
    .doc = "Axis i of the result is axis perm[i] of x.",
    .kind = OpKind::movement,
    .infer = infer_transpose,
    .grad = grads::transpose,
    .eval = eval_transpose,
    .contents = contents_moved,
    .rising = true,
    .ulps = 0,
    .samples = []() -> Samples {
      return {{{f32({2, 3})}, {{"perm", Dims{1, 0}}}},
              {{f16({2, 3, 4, 5})}, {{"perm", Dims{0, 2, 3, 1}}}},
              {{f32({3, sample_symbol(), 2})}, {{"perm", Dims{1, 2, 0}}}},
              {{b1({0, 4})}, {{"perm", Dims{1, 0}}}},
              {{f32({})}, {{"perm", Dims{}}}},
              {{f32({33, 65})}, {{"perm", Dims{1, 0}}}}};
    },
};

constinit const Op ops::broadcast = {
    .name = "broadcast",
    .doc =
        "x in attribute shape: trailing axes are aligned, axes of size 1 are repeated, axes are "
        "added in front.",
    .kind = OpKind::movement,
    .infer = infer_broadcast,
    .grad = grads::broadcast,
    .eval = eval_broadcast,
    .contents = contents_moved,
    .rising = true,
    .ulps = 0,
    .samples = []() -> Samples {
      Dim n = sample_symbol();
      return {{{f32({3})}, {{"shape", Dims{2, 3}}}},
              {{f32({2, 1, 3})}, {{"shape", Dims{4, 2, 5, 3}}}},
              {{f16({})}, {{"shape", Dims{2, 2}}}},
              {{i64({1, n})}, {{"shape", Dims{n, n}}}},
              {{f32({n, 1})}, {{"shape", Dims{n, 7}}}},
              {{f32({1})}, {{"shape", Dims{0}}}}};
    },
};

constinit const Op ops::slice = {
    .name = "slice",
    .doc =
        "Elements starts[i] + k * steps[i] of axis i, k below sizes[i]. Steps are positive "
        "numbers; starts and sizes may be expressions, and nothing is clamped.",
    .kind = OpKind::movement,
    .infer = infer_slice,
    .grad = grads::slice,
    .eval = eval_slice,
    .contents = contents_moved,
    .rising = true,
    .ulps = 0,
    .samples = []() -> Samples {
      auto cut = [](Dims starts, Dims sizes, Dims steps) -> Attrs {
        return {{"starts", std::move(starts)},
                {"sizes", std::move(sizes)},
                {"steps", std::move(steps)}};
      };
      Dim n = sample_symbol();
      return {{{f32({4, 5})}, cut({1, 0}, {2, 5}, {1, 1})},
              {{f32({9})}, cut({1}, {4}, {2})},
              {{f16({3, 4})}, cut({3, 0}, {0, 4}, {1, 1})},
              {{i64({n, 4})}, cut({n - Dim(1), 0}, {1, 2}, {1, 2})},
              {{f32({})}, cut({}, {}, {})}};
    },
};

constinit const Op ops::pad = {
    .name = "pad",
    .doc = "low[i] elements before and high[i] after each axis, all equal to operand 1, a scalar.",
    .kind = OpKind::movement,
    .infer = infer_pad,
    .grad = grads::pad,
    .eval = eval_pad,
    .contents = contents_moved,
    .rising = true,
    .ulps = 0,
    .samples = []() -> Samples {
      auto by = [](Dims low, Dims high) -> Attrs {
        return {{"low", std::move(low)}, {"high", std::move(high)}};
      };
      return {{{f32({2, 3}), f32({})}, by({1, 0}, {0, 2})},
              {{f32({0}), f32({})}, by({2}, {1})},
              {{f16({sample_symbol()}), f16({})}, by({1}, {sample_symbol()})},
              {{i64({2}), i64({})}, by({0}, {3})},
              {{f32({}), f32({})}, by({}, {})}};
    },
};

constinit const Op ops::concat = {
    .name = "concat",
    .doc = "One or more values one after another along attribute axis.",
    .kind = OpKind::movement,
    .infer = infer_concat,
    .grad = grads::concat,
    .eval = eval_concat,
    .contents = contents_moved,
    .rising = true,
    .ulps = 0,
    .samples = []() -> Samples {
      return {{{f32({2, 3}), f32({2, 1})}, {{"axis", 1}}},
              {{f32({2, 3}), f32({0, 3}), f32({sample_symbol(), 3})}, {{"axis", 0}}},
              {{f16({1, 2, 2}), f16({1, 3, 2})}, {{"axis", 1}}},
              {{i64({2})}, {{"axis", 0}}}};
    },
};

constinit const Op ops::reverse = {
    .name = "reverse",
    .doc = "Attribute axes run backwards.",
    .kind = OpKind::movement,
    .infer = infer_reverse,
    .grad = grads::reverse,
    .eval = eval_reverse,
    .contents = contents_moved,
    .rising = true,
    .ulps = 0,
    .samples = []() -> Samples {
      return {{{f32({3, 4})}, {{"axes", Dims{0}}}},
              {{f32({3, 4})}, {{"axes", Dims{0, 1}}}},
              {{f16({0})}, {{"axes", Dims{0}}}},
              {{i64({sample_symbol()})}, {{"axes", Dims{0}}}}};
    },
};

}  // namespace hone
