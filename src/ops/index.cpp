// Movement with data-dependent positions: gather, scatter and dynamic slices.
#include <algorithm>

#include "ops/check.h"
#include "ops/contents.h"
#include "ops/eval.h"
#include "ops/gradients.h"
#include "ops/indices.h"
#include "ops/join.h"
#include "ops/samples.h"
#include "ops/update.h"

namespace hone {

namespace {

// x[:axis] + indices + x[axis + 1:].
Shape gathered(const Shape& x, const Shape& indices, int axis) {
  Dims dims(x.dims.begin(), x.dims.begin() + axis);
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  return Shape(std::move(dims));
}

std::vector<Type> infer_gather(const Call& c) {
  expect_operands(c, 2);
  expect_dtype(c, 1, Accept::integer);
  const Shape &x = c.shape(0), &indices = c.shape(1);
  int axis = axis_attr(c, "axis", x.rank());
  // Nothing can be read from an empty axis, so there must be no indices.
  expect_at_most(c, min(indices.count(), 1), min(x[axis], 1), "axis ", axis,
                 " is empty, expected at least one element to index");
  return {Type(c.type(0).dtype, gathered(x, indices, axis))};
}

// A negative index counts from the back.
std::int64_t from_front(const Wide& indices, std::int64_t k, std::int64_t size) {
  const std::int64_t n = index_number(indices.dtype, indices.integers[static_cast<std::size_t>(k)]);
  return n < 0 ? n + size : n;
}

std::vector<Wide> eval_gather(const Evaluation& e) {
  const Wide &x = *e.inputs[0], &indices = *e.inputs[1];
  int axis = static_cast<int>(e.attrs.integer("axis"));
  AxisSplit s = split_at(x.dims, axis);
  std::int64_t count = indices.count();
  Sizes dims(x.dims.begin(), x.dims.begin() + axis);
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  Wide y(x.dtype, std::move(dims));
  if (s.size == 0 && y.count() > 0)
    throw UserError("gather: axis ", axis, " of x has no element, expected at least one for ",
                    count, " indices");
  for (std::int64_t k = 0; k < count; ++k) {
    std::int64_t index = from_front(indices, k, s.size);
    index = std::clamp<std::int64_t>(index, 0, s.size - 1);
    const std::int64_t box[] = {s.outer, s.inner};
    copy_box(y, {k * s.inner, {count * s.inner, 1}}, x, {index * s.inner, {s.size * s.inner, 1}},
             box);
  }
  return one_result(std::move(y));
}

std::vector<Type> infer_scatter(const Call& c) {
  expect_operands(c, 3);
  expect_dtype(c, 1, Accept::integer);
  const Type &x = c.type(0), &updates = c.type(2);
  expect_join(c);
  int axis = axis_attr(c, "axis", x.rank());
  Shape needed = gathered(x.shape, c.shape(1), axis);
  if (updates.dtype != x.dtype || updates.rank() != needed.rank())
    throw UserError("scatter: updates are ", updates, ", expected ", Type(x.dtype, needed), " for ",
                    x, " at indices ", c.type(1));
  for (int i = 0; i < needed.rank(); ++i)
    equal_sizes(c, needed[i], updates.shape[i], "sizes of the updates at axis ", i);
  return {x};
}

std::vector<Wide> eval_scatter(const Evaluation& e) {
  const Wide &indices = *e.inputs[1], &updates = *e.inputs[2];
  Wide y = *e.inputs[0];
  Join how = join_of(e.attrs.get<std::string>("kind"));
  AxisSplit s = split_at(y.dims, static_cast<int>(e.attrs.integer("axis")));
  std::int64_t count = indices.count();
  const bool rounds = e.round_sums && y.is_real();
  for (std::int64_t outer = 0; outer < s.outer; ++outer)
    for (std::int64_t k = 0; k < count; ++k) {
      std::int64_t index = from_front(indices, k, s.size);
      if (index < 0 || index >= s.size) continue;
      for (std::int64_t i = 0; i < s.inner; ++i) {
        const std::int64_t to = (outer * s.size + index) * s.inner + i;
        join_element(how, y, to, updates, (outer * count + k) * s.inner + i);
        if (!rounds) continue;
        double& sum = y.reals[static_cast<std::size_t>(to)];
        sum = round_real(y.dtype, sum);
      }
    }
  return one_result(std::move(y));
}

void expect_starts(const Call& c, std::size_t operand) {
  expect_dtype(c, operand, Accept::integer);
  expect_rank(c, operand, 1);
  equal_sizes(c, c.shape(operand)[0], c.shape(0).rank(), "the rank and the number of starts");
}

std::vector<Type> infer_dynamic_slice(const Call& c) {
  expect_operands(c, 2);
  expect_starts(c, 1);
  const Shape& x = c.shape(0);
  const Dims& sizes = sizes_attr(c, "sizes", static_cast<std::size_t>(x.rank()), 0);
  for (int i = 0; i < x.rank(); ++i)
    expect_at_most(c, sizes[static_cast<std::size_t>(i)], x[i], "the size at axis ", i, " is ",
                   sizes[static_cast<std::size_t>(i)], ", expected at most ", x[i]);
  return {Type(c.type(0).dtype, Shape(sizes))};
}

// The start of a part of the given sizes in x, clamped so that the part is inside x.
Box clamped_box(const Wide& x, const Wide& starts, const Sizes& sizes) {
  Box box{0, row_major(x.dims)};
  for (std::size_t i = 0; i < sizes.size(); ++i)
    box.base += std::clamp<std::int64_t>(index_number(starts.dtype, starts.integers[i]), 0,
                                         x.dims[i] - sizes[i]) *
                box.strides[i];
  return box;
}

std::vector<Type> infer_dynamic_update(const Call& c) {
  expect_operands(c, 3);
  expect_same_dtype(c, 0, 2);
  expect_starts(c, 2);
  expect_rank(c, 1, c.shape(0).rank());
  for (int i = 0; i < c.shape(0).rank(); ++i)
    expect_at_most(c, c.shape(1)[i], c.shape(0)[i], "the size of the update at axis ", i, " is ",
                   c.shape(1)[i], ", expected at most ", c.shape(0)[i]);
  return {c.type(0)};
}

std::vector<Wide> eval_dynamic_update(const Evaluation& e) {
  Wide y = *e.inputs[0];
  update_box(y, *e.inputs[1], *e.inputs[2]);
  return one_result(std::move(y));
}

}  // namespace

void update_box(Wide& x, const Wide& part, const Wide& starts) {
  copy_box(x, clamped_box(x, starts, part.dims), part, {0, row_major(part.dims)}, part.dims);
}

constinit const Op ops::gather = {
    .name = "gather",
    .doc =
        "Slices of x along attribute axis at operand 1, integers of any shape, which takes the "
        "place of that axis. Negative indices count from the back; what is still outside is "
        "clamped to the nearest end.",
    .kind = OpKind::movement,
    .infer = infer_gather,
    .grad = grads::gather,
    .eval = eval_gather,
    .contents = contents_indexed,
    .ulps = 0,
    .samples = []() -> Samples {
      return {{{f32({4, 3}), i64({2})}, {{"axis", 0}}},
              {{f32({2, 5, 3}), i32({2, 2})}, {{"axis", 1}}},
              {{f16({3, 4}), i64({})}, {{"axis", 1}}},
              {{i64({6}), i64({3})}, {{"axis", 0}}},
              {{f32({sample_symbol(), 2}), i64({0})}, {{"axis", 0}}}};
    },
    .low = -6,
    .high = 6,
};

constinit const Op ops::scatter = {
    .name = "scatter",
    .doc =
        "x with updates (operand 2) joined in along attribute axis at indices (operand 1): the "
        "inverse of gather. Attribute kind: set, add, mul, max, min, in row-major order of the "
        "updates. Negative indices count from the back; updates still outside are dropped.",
    .kind = OpKind::other,
    .infer = infer_scatter,
    .grad = grads::scatter,
    .eval = eval_scatter,
    .samples = []() -> Samples {
      auto at = [](int axis, std::string kind) -> Attrs {
        return {{"axis", axis}, {"kind", std::move(kind)}};
      };
      return {{{f32({5, 2}), i64({3}), f32({3, 2})}, at(0, "set")},
              {{f32({2, 4}), i64({6}), f32({2, 6})}, at(1, "add")},
              {{f16({4}), i32({2, 2}), f16({2, 2})}, at(0, "max")},
              {{i64({5}), i64({4}), i64({4})}, at(0, "mul")},
              {{f32({3}), i64({}), f32({})}, at(0, "min")},
              {{f32({3}), i64({0}), f32({0})}, at(0, "add")}};
    },
    .low = -5,
    .high = 5,
};

constinit const Op ops::dynamic_slice = {
    .name = "dynamic_slice",
    .doc =
        "The part of x of attribute sizes that starts at operand 1 (integers, one for each "
        "axis); starts are clamped so that the part is inside.",
    .kind = OpKind::movement,
    .infer = infer_dynamic_slice,
    .grad = grads::dynamic_slice,
    .eval = [](const Evaluation& e) -> std::vector<Wide> {
      const Wide& x = *e.inputs[0];
      Sizes sizes = e.sizes(e.attrs.dims("sizes"));
      return one_result(take_box(x, clamped_box(x, *e.inputs[1], sizes), sizes));
    },
    .contents = contents_indexed,
    .ulps = 0,
    .samples = []() -> Samples {
      return {{{f32({4, 5}), i64({2})}, {{"sizes", Dims{2, 3}}}},
              {{f16({6}), i32({1})}, {{"sizes", Dims{6}}}},
              {{i64({5}), i64({1})}, {{"sizes", Dims{0}}}},
              {{f32({}), i64({0})}, {{"sizes", Dims{}}}}};
    },
    .low = -3,
    .high = 6,
};

constinit const Op ops::dynamic_update = {
    .name = "dynamic_update",
    .doc =
        "x with the part that starts at operand 2 (integers, one for each axis) replaced by "
        "operand 1; starts are clamped so that the part is inside.",
    .kind = OpKind::movement,
    .infer = infer_dynamic_update,
    .grad = grads::dynamic_update,
    .eval = eval_dynamic_update,
    .ulps = 0,
    .samples = []() -> Samples {
      return {{{f32({4, 5}), f32({2, 3}), i64({2})}, {}},
              {{f16({6}), f16({1}), i32({1})}, {}},
              {{i64({5}), i64({0}), i64({1})}, {}},
              {{f32({}), f32({}), i64({0})}, {}}};
    },
    .low = -3,
    .high = 6,
};

}  // namespace hone
