// Gather and scatter with one index per element or per slice, implemented with one flat index.
#include <algorithm>

#include "ops/check.h"
#include "ops/eval.h"
#include "ops/indices.h"
#include "ops/join.h"
#include "ops/samples.h"

namespace hone {

namespace {

Value size_like(Value x, const Dim& d) {
  return broadcast_to(size_value(x.graph(), d, x.dtype()), x.shape());
}

// Negative indices count from the back.
Value from_front(Value index, const Dim& size) {
  return ops::select(ops::lt(index, integer_like(index, 0)), index + size_like(index, size), index);
}

Value clamped(Value index, const Dim& size) {
  return ops::clip(index, integer_like(index, 0), size_like(index, size - Dim(1)));
}

Value is_inside(Value index, const Dim& size) {
  return ops::bit_and(ops::le(integer_like(index, 0), index),
                      ops::lt(index, size_like(index, size)));
}

// The offset of x along `axis` times its stride, summed with row-major positions of all others.
Value flat_index(Value index, const Shape& x, int axis) {
  Dims strides = dense_strides(x);
  Value flat = index * size_like(index, strides[static_cast<std::size_t>(axis)]);
  for (int k = 0; k < x.rank(); ++k)
    if (k != axis && x[k] != Dim(1)) {
      Value place = iota_value(index.graph(), index.dtype(), index.shape(), k);
      flat = flat + place * size_like(place, strides[static_cast<std::size_t>(k)]);
    }
  return flat;
}

// One index per element: x and indices have the same rank, and on the other axes the indices are
// not larger than x.
int expect_elementwise_indices(const Call& c) {
  expect_dtype(c, 1, Accept::integer);
  const Shape &x = c.shape(0), &indices = c.shape(1);
  int axis = axis_attr(c, "axis", x.rank());
  expect_rank(c, 1, x.rank());
  for (int k = 0; k < x.rank(); ++k)
    if (k != axis)
      expect_at_most(c, indices[k], x[k], "the size of the indices at axis ", k, " is ", indices[k],
                     ", expected at most ", x[k]);
  return axis;
}

std::vector<Type> infer_gather_elements(const Call& c) {
  expect_operands(c, 2);
  int axis = expect_elementwise_indices(c);
  expect_at_most(c, min(c.shape(1).count(), 1), min(c.shape(0)[axis], 1), "axis ", axis,
                 " is empty, expected at least one element to index");
  return {Type(c.type(0).dtype, c.shape(1))};
}

Values expand_gather_elements(const Call& c) {
  const Shape& x = c.shape(0);
  int axis = static_cast<int>(c.attrs.integer("axis"));
  Value index = from_front(index_value(c.operands[1]), x[axis]);
  Value flat = flat_index(clamped(index, x[axis]), x, axis);
  return {ops::gather(Values{flatten(c.operands[0]), flat}, {{"axis", 0}})};
}

// Flat positions of elementwise indices in x; -1 where they are outside.
std::vector<std::int64_t> element_places(const Wide& x, const Wide& indices, int axis) {
  Sizes from = row_major(x.dims), to = row_major(indices.dims);
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < indices.count(); ++i) {
    std::int64_t at = 0, n = x.dims[static_cast<std::size_t>(axis)],
                 index = index_number(indices.dtype, indices.integers[static_cast<std::size_t>(i)]);
    if (index < 0) index += n;
    for (std::size_t k = 0; k < x.dims.size(); ++k)
      at += (static_cast<int>(k) == axis ? index : i / to[k] % indices.dims[k]) * from[k];
    places.push_back(index < 0 || index >= n ? -1 : at);
  }
  return places;
}

std::vector<Wide> eval_scatter_elements(const Evaluation& e) {
  Wide y = *e.inputs[0];
  Join how = join_of(e.attrs.get<std::string>("kind"));
  std::int64_t next = 0;
  for (std::int64_t at :
       element_places(y, *e.inputs[1], static_cast<int>(e.attrs.integer("axis")))) {
    if (at >= 0) join_element(how, y, at, *e.inputs[2], next);
    if (at >= 0 && e.round_sums && y.is_real()) {
      double& sum = y.reals[static_cast<std::size_t>(at)];
      sum = round_real(y.dtype, sum);
    }
    ++next;
  }
  return one_result(std::move(y));
}

std::vector<Type> infer_scatter_elements(const Call& c) {
  expect_operands(c, 3);
  expect_elementwise_indices(c);
  expect_join(c);
  if (c.type(2).dtype != c.type(0).dtype)
    throw UserError("scatter_elements: updates are ", c.type(2), ", expected ", c.type(0).dtype,
                    " as the operand; cast one of them");
  equal_shapes(c, 1, 3);
  return {c.type(0)};
}

// Scatters rows of updates into rows of x; rows where `inside` does not hold are dropped.
Value scatter_rows(Value x, Value flat, Value inside, Value updates, const Attrs& attrs) {
  Value nowhere = size_like(flat, x.shape()[0]);
  return ops::scatter(Values{x, ops::select(inside, flat, nowhere), updates},
                      {{"axis", 0}, {"kind", attrs.get<std::string>("kind")}});
}

Values expand_scatter_elements(const Call& c) {
  const Shape& x = c.shape(0);
  int axis = static_cast<int>(c.attrs.integer("axis"));
  Value index = from_front(index_value(c.operands[1]), x[axis]);
  Value y = scatter_rows(flatten(c.operands[0]), flat_index(index, x, axis),
                         is_inside(index, x[axis]), c.operands[2], c.attrs);
  return {reshape_to(y, x.dims)};
}

// gather_nd and scatter_nd: the indices' last axis is a position in the axes [batch, end) of x.
struct Places {
  int batch = 0, end = 0;
};

Places expect_places(const Call& c, bool batched) {
  expect_dtype(c, 1, Accept::integer);
  const Shape &x = c.shape(0), &indices = c.shape(1);
  const std::int64_t given = batched ? integer_attr(c, "batch", 0) : 0;
  if (indices.rank() < 1 || !indices[-1].is_number() || given < 0 || given > x.rank() ||
      indices[-1].number() > x.rank() - given || given > indices.rank() - 1)
    throw UserError(
        c.op.name, ": indices are ", c.type(1), " with ", given,
        " batch axes, expected a last axis with at most one index for each further axis of ",
        c.type(0));
  const int batch = static_cast<int>(given);
  for (int k = 0; k < batch; ++k) equal_sizes(c, x[k], indices[k], "batch sizes at axis ", k);
  return {batch, batch + static_cast<int>(indices[-1].number())};
}

Shape places_shape(const Shape& x, const Shape& indices, int end) {
  Dims dims(indices.dims.begin(), indices.dims.end() - 1);
  dims.insert(dims.end(), x.dims.begin() + end, x.dims.end());
  return Shape(std::move(dims));
}

struct FlatPlaces {
  Value index, inside;
};

// Flat positions in x with its first `end` axes joined; batch axes of the indices are x's.
FlatPlaces flat_places(Value indices, const Shape& x, Places p, bool clamp) {
  Value wide = index_value(indices);
  Shape lead(Dims(indices.shape().dims.begin(), indices.shape().dims.end() - 1));
  Dims strides = dense_strides(Shape(Dims(x.dims.begin(), x.dims.begin() + p.end)));
  Graph& graph = indices.graph();
  Value zero = broadcast_to(constant(graph, Array::scalar_int(0, DType::i64)), lead);
  FlatPlaces out{zero, ops::eq(zero, zero)};
  for (int k = 0; k < p.end; ++k) {
    Value place = k < p.batch ? iota_value(graph, DType::i64, lead, k)
                              : from_front(take_axis(wide, -1, k - p.batch), x[k]);
    if (clamp) place = clamped(place, x[k]);
    out.inside = ops::bit_and(out.inside, is_inside(place, x[k]));
    out.index = out.index + place * size_like(place, strides[static_cast<std::size_t>(k)]);
  }
  return out;
}

Value joined_axes(Value x, int end) {
  Dims dims = {product(std::span(x.shape().dims).first(static_cast<std::size_t>(end)))};
  dims.insert(dims.end(), x.shape().dims.begin() + end, x.shape().dims.end());
  return reshape_to(x, std::move(dims));
}

std::vector<Type> infer_gather_nd(const Call& c) {
  expect_operands(c, 2);
  Places p = expect_places(c, true);
  for (int k = p.batch; k < p.end; ++k)
    expect_at_most(c, min(c.shape(1).count(), 1), min(c.shape(0)[k], 1), "axis ", k,
                   " is empty, expected at least one element to index");
  return {Type(c.type(0).dtype, places_shape(c.shape(0), c.shape(1), p.end))};
}

Values expand_gather_nd(const Call& c) {
  Places p = expect_places(c, true);
  Value flat = flat_places(c.operands[1], c.shape(0), p, true).index;
  return {ops::gather(Values{joined_axes(c.operands[0], p.end), flat}, {{"axis", 0}})};
}

std::vector<Type> infer_scatter_nd(const Call& c) {
  expect_operands(c, 3);
  Places p = expect_places(c, false);
  expect_join(c);
  Type needed(c.type(0).dtype, places_shape(c.shape(0), c.shape(1), p.end));
  if (c.type(2).dtype != needed.dtype || c.type(2).rank() != needed.rank())
    throw UserError("scatter_nd: updates are ", c.type(2), ", expected ", needed, " for ",
                    c.type(0), " at indices ", c.type(1));
  for (int k = 0; k < needed.rank(); ++k)
    equal_sizes(c, needed.shape[k], c.shape(2)[k], "sizes of the updates at axis ", k);
  return {c.type(0)};
}

Values expand_scatter_nd(const Call& c) {
  Places p = expect_places(c, false);
  FlatPlaces at = flat_places(c.operands[1], c.shape(0), p, false);
  Value y =
      scatter_rows(joined_axes(c.operands[0], p.end), at.index, at.inside, c.operands[2], c.attrs);
  return {reshape_to(y, c.shape(0).dims)};
}

// Reference implementation of gather_nd and scatter_nd: for each position, the start of its slice
// of x and whether it is in range; clamped on request.
struct PlainPlaces {
  std::int64_t slice = 1;  // elements per slice
  std::vector<std::int64_t> starts;
  std::vector<bool> inside;
};

PlainPlaces plain_places(const Wide& x, const Wide& indices, int batch, bool clamp) {
  PlainPlaces p;
  std::int64_t depth = indices.dims.back(),
               count = count_of(indices.dims) / std::max<std::int64_t>(1, depth);
  Sizes lead(indices.dims.begin(), indices.dims.end() - 1), lead_strides = row_major(lead),
                                                            strides = row_major(x.dims);
  for (auto k = static_cast<std::size_t>(batch + depth); k < x.dims.size(); ++k)
    p.slice *= x.dims[k];
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t start = 0;
    bool inside = true;
    for (std::size_t k = 0; k < static_cast<std::size_t>(batch + depth); ++k) {
      std::int64_t n = x.dims[k], at = 0;
      if (static_cast<int>(k) < batch) {
        at = i / lead_strides[k] % lead[k];
      } else {
        at = indices.integers[static_cast<std::size_t>(i * depth) + k -
                              static_cast<std::size_t>(batch)];
        if (at < 0) at += n;
      }
      inside = inside && at >= 0 && at < n;
      start += (clamp ? std::clamp<std::int64_t>(at, 0, n - 1) : at) * strides[k];
    }
    p.starts.push_back(start);
    p.inside.push_back(inside);
  }
  return p;
}

std::vector<Wide> eval_gather_nd(const Evaluation& e) {
  const Wide& x = *e.inputs[0];
  PlainPlaces p = plain_places(x, *e.inputs[1], static_cast<int>(e.attrs.integer("batch")), true);
  Wide y(x.dtype, e.result_dims());
  for (std::int64_t i = 0; i < y.count(); ++i)
    join_element(Join::set, y, i, x, p.starts[static_cast<std::size_t>(i / p.slice)] + i % p.slice);
  return one_result(std::move(y));
}

std::vector<Wide> eval_scatter_nd(const Evaluation& e) {
  Wide y = *e.inputs[0];
  PlainPlaces p = plain_places(y, *e.inputs[1], 0, false);
  Join how = join_of(e.attrs.get<std::string>("kind"));
  for (std::int64_t i = 0; i < e.inputs[2]->count(); ++i) {
    auto place = static_cast<std::size_t>(i / p.slice);
    if (p.inside[place]) join_element(how, y, p.starts[place] + i % p.slice, *e.inputs[2], i);
  }
  return one_result(std::move(y));
}

}  // namespace

constinit const Op ops::gather_elements = {
    .name = "gather_elements",
    .doc =
        "The result has the shape of the indices (operand 1): each element is x at its own "
        "place, with the index along attribute axis. Indices count and clamp as in gather.",
    .kind = OpKind::other,
    .infer = infer_gather_elements,
    .expand = expand_gather_elements,
    .eval = [](const Evaluation& e) -> std::vector<Wide> {
      const Wide& x = *e.inputs[0];
      Wide index = *e.inputs[1];
      int axis = static_cast<int>(e.attrs.integer("axis"));
      std::int64_t n = x.dims[static_cast<std::size_t>(axis)];
      for (std::int64_t& k : index.integers)
        k = std::clamp<std::int64_t>(k < 0 ? k + n : k, 0, n - 1);
      Wide y(x.dtype, index.dims);
      std::int64_t next = 0;
      for (std::int64_t at : element_places(x, index, axis))
        join_element(Join::set, y, next++, x, at);
      return one_result(std::move(y));
    },
    .samples = []() -> Samples {
      return {{{f32({4, 3}), i64({2, 3})}, {{"axis", 0}}},
              {{f16({2, 5}), i32({2, 4})}, {{"axis", 1}}},
              {{i64({3, 2, 4}), i64({3, 2, 1})}, {{"axis", 2}}},
              {{f32({5}), i64({0})}, {{"axis", 0}}}};
    },
    .low = -6,
    .high = 6,
};

constinit const Op ops::scatter_elements = {
    .name = "scatter_elements",
    .doc =
        "x with each update (operand 2) joined in at its own place with the index (operand 1) "
        "along attribute axis: the inverse of gather_elements. Attribute kind as in scatter; "
        "updates outside are dropped.",
    .kind = OpKind::other,
    .infer = infer_scatter_elements,
    .expand = expand_scatter_elements,
    .eval = eval_scatter_elements,
    .samples = []() -> Samples {
      auto by = [](int axis, std::string kind) -> Attrs {
        return {{"axis", axis}, {"kind", std::move(kind)}};
      };
      return {{{f32({4, 3}), i64({2, 3}), f32({2, 3})}, by(0, "set")},
              {{f16({2, 5}), i32({2, 4}), f16({2, 4})}, by(1, "add")},
              {{i64({6}), i64({4}), i64({4})}, by(0, "max")},
              {{f32({5}), i64({0}), f32({0})}, by(0, "mul")}};
    },
    .low = -6,
    .high = 6,
};

constinit const Op ops::gather_nd = {
    .name = "gather_nd",
    .doc =
        "Slices of x at places: the last axis of the indices (operand 1) lists an index for each "
        "of the axes that follow the first `batch` ones, which both share. Indices count and "
        "clamp as in gather.",
    .kind = OpKind::other,
    .infer = infer_gather_nd,
    .expand = expand_gather_nd,
    .eval = eval_gather_nd,
    .samples = []() -> Samples {
      return {{{f32({4, 3}), i64({2, 2})}, {{"batch", 0}}},
              {{f32({4, 3, 2}), i64({5, 1})}, {{"batch", 0}}},
              {{f16({2, 3, 4}), i32({2, 2, 1})}, {{"batch", 1}}},
              {{f32({3}), i64({0, 1})}, {{"batch", 0}}}};
    },
    .low = -5,
    .high = 5,
};

constinit const Op ops::scatter_nd = {
    .name = "scatter_nd",
    .doc =
        "x with slices of updates (operand 2) joined in at the places that the last axis of the "
        "indices (operand 1) lists. Attribute kind as in scatter; updates outside are dropped.",
    .kind = OpKind::other,
    .infer = infer_scatter_nd,
    .expand = expand_scatter_nd,
    .eval = eval_scatter_nd,
    .samples = []() -> Samples {
      auto by = [](std::string kind) -> Attrs { return {{"kind", std::move(kind)}}; };
      return {{{f32({4, 3}), i64({2, 2}), f32({2})}, by("set")},
              {{f32({4, 3}), i64({5, 1}), f32({5, 3})}, by("add")},
              {{f16({2, 3}), i32({2, 1, 2}), f16({2, 1})}, by("max")},
              {{i64({3}), i64({0, 1}), i64({0})}, by("min")}};
    },
    .low = -5,
    .high = 5,
};

}  // namespace hone
