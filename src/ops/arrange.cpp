// Movement made of smaller movements: repetition, padding with elements of x, one-hot rows.
#include "ops/check.h"
#include "ops/contents.h"
#include "ops/eval.h"
#include "ops/indices.h"
#include "ops/samples.h"

namespace hone {

namespace {

std::vector<Type> infer_tile(const Call& c) {
  expect_operands(c, 1);
  Shape to = c.shape(0);
  const Dims& count = sizes_attr(c, "count", static_cast<std::size_t>(to.rank()), 0);
  for (std::size_t i = 0; i < count.size(); ++i) to.dims[i] = to.dims[i] * count[i];
  return {Type(c.type(0).dtype, std::move(to))};
}

Values expand_tile(const Call& c) {
  const Dims &dims = c.shape(0).dims, &count = c.attrs.dims("count");
  Dims apart, repeated, joined;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (count[i] != Dim(1)) {
      apart.push_back(1);
      repeated.push_back(count[i]);
    }
    apart.push_back(dims[i]);
    repeated.push_back(dims[i]);
    joined.push_back(dims[i] * count[i]);
  }
  return {reshape_to(broadcast_to(reshape_to(c.operands[0], apart), Shape(repeated)), joined)};
}

std::vector<Wide> eval_tile(const Evaluation& e) {
  const Wide& x = *e.inputs[0];
  Sizes dims = x.dims, count = e.sizes(e.attrs.dims("count")), strides = row_major(x.dims);
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i] *= count[i];
  Wide y(x.dtype, dims);
  Sizes to = row_major(dims);
  for (std::int64_t i = 0; i < y.count(); ++i) {
    std::int64_t from = 0;
    for (std::size_t k = 0; k < dims.size(); ++k)
      from += i / to[k] % dims[k] % x.dims[k] * strides[k];
    join_element(Join::set, y, i, x, from);
  }
  return one_result(std::move(y));
}

std::vector<Type> infer_pad_inside(const Call& c, std::int64_t less) {
  expect_operands(c, 1);
  Shape to = c.shape(0);
  auto rank = static_cast<std::size_t>(to.rank());
  const Dims &low = sizes_attr(c, "low", rank, 0), &high = sizes_attr(c, "high", rank, 0);
  for (std::size_t i = 0; i < rank; ++i) {
    // Edge padding needs one element, reflection by n needs n + 1.
    for (const Dim& by : {low[i], high[i]}) {
      if (by == Dim(0)) continue;
      if (less > 0)
        expect_at_most(c, by + Dim(less), to.dims[i], "the padding at axis ", i, " is ", by,
                       ", expected at most ", to.dims[i] - Dim(less));
      else
        expect_at_most(c, min(by, 1), to.dims[i], "the padding at axis ", i, " is ", by,
                       ", but the axis is empty, so there is no edge to repeat");
    }
    to.dims[i] = to.dims[i] + low[i] + high[i];
  }
  return {Type(c.type(0).dtype, std::move(to))};
}

Value repeated_edge(Value x, int axis, const Dim& place, const Dim& count) {
  Shape to = x.shape();
  to[axis] = count;
  return broadcast_to(slice_axis(x, axis, place, 1), to);
}

// Adds parts of x, made by `part(x, axis, is_high)`, before and after it along each padded axis.
template <class F>
Values expand_pad(const Call& c, F part) {
  Value x = c.operands[0];
  const Dims &low = c.attrs.dims("low"), &high = c.attrs.dims("high");
  for (int axis = 0; axis < x.rank(); ++axis) {
    auto i = static_cast<std::size_t>(axis);
    Values parts;
    if (low[i] != Dim(0)) parts.push_back(part(x, axis, low[i], false));
    parts.push_back(x);
    if (high[i] != Dim(0)) parts.push_back(part(x, axis, high[i], true));
    x = concat_values(parts, axis);
  }
  return {x};
}

Values expand_edge(const Call& c) {
  return expand_pad(c, [](Value x, int axis, const Dim& count, bool high) {
    return repeated_edge(x, axis, high ? x.shape()[axis] - Dim(1) : Dim(0), count);
  });
}

Values expand_reflect(const Call& c) {
  return expand_pad(c, [](Value x, int axis, const Dim& count, bool high) {
    Dim start = high ? x.shape()[axis] - Dim(1) - count : Dim(1);
    return reverse_axes(slice_axis(x, axis, start, count), {axis});
  });
}

// y[i] = x[place(i - low, size)] along each axis.
std::vector<Wide> eval_pad(const Evaluation& e,
                           std::int64_t (*place)(std::int64_t i, std::int64_t size)) {
  const Wide& x = *e.inputs[0];
  Wide y(x.dtype, e.result_dims());
  Sizes low = e.sizes(e.attrs.dims("low")), to = row_major(y.dims), from = row_major(x.dims);
  for (std::int64_t i = 0; i < y.count(); ++i) {
    std::int64_t at = 0;
    for (std::size_t k = 0; k < low.size(); ++k)
      at += place(i / to[k] % y.dims[k] - low[k], x.dims[k]) * from[k];
    join_element(Join::set, y, i, x, at);
  }
  return one_result(std::move(y));
}

Samples pad_samples() {
  auto by = [](Dims low, Dims high) -> Attrs {
    return {{"low", std::move(low)}, {"high", std::move(high)}};
  };
  return {{{f32({4, 5})}, by({1, 2}, {0, 3})},
          {{f16({3})}, by({2}, {2})},
          {{i64({4})}, by({0}, {1})},
          {{f32({0, 2})}, by({0, 1}, {0, 0})},
          {{f32({sample_symbol(), 3})}, by({0, 1}, {0, 2})},
          {{f32({})}, by({}, {})}};
}

std::vector<Type> infer_one_hot(const Call& c) {
  expect_operands(c, 3);
  expect_dtype(c, 0, Accept::integer);
  expect_same_dtype(c, 1, 3);
  expect_rank(c, 1, 0);
  expect_rank(c, 2, 0);
  Dims dims = c.shape(0).dims;
  int axis = axis_attr(c, "axis", c.type(0).rank() + 1);
  dims.insert(dims.begin() + axis, sizes_attr(c, "count", 1, 0)[0]);
  return {Type(c.type(1).dtype, Shape(std::move(dims)))};
}

Values expand_one_hot(const Call& c) {
  Value index = index_value(c.operands[0]);
  const Dim& depth = c.attrs.dims("count")[0];
  const Shape& full = c.results[0].shape;
  int axis = static_cast<int>(c.attrs.integer("axis"));
  Value size = broadcast_to(size_value(c.graph, depth, DType::i64), index.shape());
  index = ops::select(ops::lt(index, integer_like(index, 0)), index + size, index);
  Value hit =
      ops::eq(broadcast_back(index, {axis}, full), iota_value(c.graph, DType::i64, full, axis));
  return {ops::select(hit, broadcast_to(c.operands[1], full), broadcast_to(c.operands[2], full))};
}

std::vector<Wide> eval_one_hot(const Evaluation& e) {
  const Wide& index = *e.inputs[0];
  Wide y(e.inputs[1]->dtype, e.result_dims());
  fill(y, *e.inputs[2]);
  AxisSplit s = split_at(y.dims, static_cast<int>(e.attrs.integer("axis")));
  for (std::int64_t i = 0; i < index.count(); ++i) {
    std::int64_t hit = index_number(index.dtype, index.integers[static_cast<std::size_t>(i)]);
    if (hit < -s.size || hit >= s.size) continue;
    hit = (hit + s.size) % s.size;
    join_element(Join::set, y, (i / s.inner * s.size + hit) * s.inner + i % s.inner, *e.inputs[1],
                 0);
  }
  return one_result(std::move(y));
}

}  // namespace

constinit const Op ops::tile = {
    .name = "tile",
    .doc = "x repeated count[i] times along axis i, one copy after another.",
    .kind = OpKind::movement,
    .infer = infer_tile,
    .expand = expand_tile,
    .eval = eval_tile,
    .contents = contents_moved,
    .samples = []() -> Samples {
      return {{{f32({2, 3})}, {{"count", Dims{2, 1}}}},
              {{f32({2, 3})}, {{"count", Dims{2, 3}}}},
              {{f16({4})}, {{"count", Dims{0}}}},
              {{i64({sample_symbol()})}, {{"count", Dims{2}}}},
              {{f32({})}, {{"count", Dims{}}}}};
    },
};

constinit const Op ops::pad_edge = {
    .name = "pad_edge",
    .doc = "low[i] copies of the first element before axis i and high[i] of the last after it.",
    .kind = OpKind::movement,
    .infer = [](const Call& c) { return infer_pad_inside(c, 0); },
    .expand = expand_edge,
    .eval =
        [](const Evaluation& e) {
          return eval_pad(e, [](std::int64_t i, std::int64_t n) {
            return i < 0 ? 0 : i < n ? i : n - 1;
          });
        },
    .samples = pad_samples,
};

constinit const Op ops::pad_reflect = {
    .name = "pad_reflect",
    .doc =
        "low[i] and high[i] elements mirrored at the first and last element of axis i, which "
        "are not repeated.",
    .kind = OpKind::movement,
    .infer = [](const Call& c) { return infer_pad_inside(c, 1); },
    .expand = expand_reflect,
    .eval =
        [](const Evaluation& e) {
          return eval_pad(e, [](std::int64_t i, std::int64_t n) {
            return i < 0 ? -i : i < n ? i : 2 * (n - 1) - i;
          });
        },
    .samples =
        [] {
          Samples all = pad_samples();
          all[0].attrs.set("high", Dims{0, 3});
          return all;
        },
};

constinit const Op ops::one_hot = {
    .name = "one_hot",
    .doc =
        "A new attribute axis of size count[0] that holds operand 1 (scalar) at the index given "
        "by operand 0 and operand 2 (scalar) elsewhere. Negative indices count from the back; "
        "an index outside leaves its row without a hit.",
    .infer = infer_one_hot,
    .expand = expand_one_hot,
    .eval = eval_one_hot,
    .samples = []() -> Samples {
      return {{{i64({2, 3}), f32({}), f32({})}, {{"axis", 2}, {"count", Dims{4}}}},
              {{i32({4}), f16({}), f16({})}, {{"axis", 0}, {"count", Dims{3}}}},
              {{i64({}), i64({}), i64({})}, {{"axis", 0}, {"count", Dims{5}}}},
              {{i64({0}), f32({}), f32({})}, {{"axis", 1}, {"count", Dims{2}}}},
              {{i64({sample_symbol()}), f32({}), f32({})}, {{"axis", 1}, {"count", Dims{6}}}}};
    },
    .low = -6,
    .high = 6,
};

}  // namespace hone
