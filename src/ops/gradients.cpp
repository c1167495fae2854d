#include "ops/gradients.h"

#include <algorithm>
#include <map>
#include <numbers>
#include <unordered_map>
#include <unordered_set>

#include "ops/common.h"
#include "ops/contraction.h"

namespace hone {

namespace {

Dims zeros(const Shape& s) { return Dims(s.dims.size(), 0); }

}  // namespace

// ---- elementwise

Values grads::zero(const Call& c, std::span<const Value>, std::span<const Value>) {
  return Values(c.operands.size());
}

// ---- movement

Values grads::reshape(const Call& c, std::span<const Value>, std::span<const Value> dy) {
  return {reshape_to(dy[0], c.shape(0).dims)};
}

Values grads::transpose(const Call& c, std::span<const Value>, std::span<const Value> dy) {
  const Axes perm = axes_of(c.attrs, "perm");
  Axes back(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i)
    back[static_cast<std::size_t>(perm[i])] = static_cast<int>(i);
  return {transpose_by(dy[0], back)};
}

Values grads::broadcast(const Call& c, std::span<const Value>, std::span<const Value> dy) {
  return {sum_to(dy[0], c.shape(0))};
}

// Adds zeros between the elements of an axis, then at its ends.
Values grads::slice(const Call& c, std::span<const Value>, std::span<const Value> dy) {
  const Shape& x = c.shape(0);
  const Dims &starts = c.attrs.dims("starts"), &steps = c.attrs.dims("steps");
  const Value none = scalar(dy[0].graph(), 0, dy[0].dtype());
  Value d = dy[0];
  for (int i = 0; i < x.rank(); ++i) {
    const Dim &step = steps[static_cast<std::size_t>(i)],
              start = starts[static_cast<std::size_t>(i)];
    Dims low = zeros(d.shape()), high = low;
    Dim have = d.shape()[i];
    if (step != Dim(1)) {
      Value apart = unsqueeze(d, {i + 1});
      Dims none_low = zeros(apart.shape()), after = none_low;
      after[static_cast<std::size_t>(i) + 1] = step - Dim(1);
      Dims joined = d.shape().dims;
      have = joined[static_cast<std::size_t>(i)] = have * step;
      d = reshape_to(pad_with(apart, none, none_low, after), joined);
    }
    // The zeros after the last element may extend past the end of x.
    const Dim size = min(have, x[i] - start);
    d = slice_axis(d, i, 0, size);
    low[static_cast<std::size_t>(i)] = start;
    high[static_cast<std::size_t>(i)] = x[i] - start - size;
    d = pad_with(d, none, low, high);
  }
  return {d};
}

Values grads::pad(const Call& c, std::span<const Value>, std::span<const Value> dy) {
  Value d = dy[0];
  for (int i = 0; i < d.rank(); ++i)
    d = slice_axis(d, i, c.attrs.dims("low")[static_cast<std::size_t>(i)], c.shape(0)[i]);
  const Value all = reduce_axes(ops::reduce_sum, dy[0], all_axes(dy[0].rank()));
  return {d, all - reduce_axes(ops::reduce_sum, d, all_axes(d.rank()))};
}

Values grads::concat(const Call& c, std::span<const Value>, std::span<const Value> dy) {
  const auto axis = static_cast<int>(c.attrs.integer("axis"));
  Dims sizes;
  for (const Value& v : c.operands) sizes.push_back(v.shape()[axis]);
  return split_axis(dy[0], axis, sizes);
}

Values grads::reverse(const Call& c, std::span<const Value>, std::span<const Value> dy) {
  return {reverse_axes(dy[0], axes_of(c.attrs, "axes"))};
}

// Out-of-range indices are clamped to the nearest end.
Values grads::gather(const Call& c, std::span<const Value>, std::span<const Value> dy) {
  const Value x = c.operands[0];
  const std::int64_t axis = c.attrs.integer("axis");
  const Value index = cast_to(c.operands[1], DType::i64),
              size =
                  broadcast_to(size_value(c.graph, x.shape()[static_cast<int>(axis)], DType::i64),
                               index.shape()),
              zero = integer_like(index, 0);
  const Value front = ops::select(ops::lt(index, zero), index + size, index);
  const Value inside = ops::minimum(ops::maximum(front, zero), size - integer_like(size, 1));
  return {ops::scatter(Values{constant_like(x, 0), inside, dy[0]},
                       {{"axis", axis}, {"kind", std::string("add")}}),
          {}};
}

Values grads::dynamic_slice(const Call& c, std::span<const Value>, std::span<const Value> dy) {
  return {ops::dynamic_update(constant_like(c.operands[0], 0), dy[0], c.operands[1]), {}};
}

Values grads::dynamic_update(const Call& c, std::span<const Value>, std::span<const Value> dy) {
  const Value part = c.operands[1], starts = c.operands[2];
  return {ops::dynamic_update(dy[0], constant_like(part, 0), starts),
          ops::dynamic_slice(Values{dy[0], starts}, {{"sizes", part.shape().dims}}),
          {}};
}

// (x - result) / y is q, but for rounding.
Values grads::remainder(const Call& c, std::span<const Value> results, std::span<const Value> dy) {
  if (!is_float(c.operands[0].dtype())) return Values(2);
  const Value q = ops::round((c.operands[0] - results[0]) / c.operands[1]);
  return {dy[0], -(dy[0] * q)};
}

// ---- sums

Values grads::reduce_sum(const Call& c, std::span<const Value>, std::span<const Value> dy) {
  return {broadcast_back(dy[0], axes_of(c.attrs, "axes"), c.shape(0))};
}

Product::Product(Value of) : x(of), is_zero(ops::eq(of, constant_like(of, 0))) {
  const Value one = constant_like(x, 1);
  rest = ops::select(is_zero, one, x);
  zeros = ops::select(is_zero, one, constant_like(x, 0));
}

Value Product::of_others(Value of_rest, Value zero_count) const {
  const Value none = constant_like(x, 0);
  return ops::select(is_zero, ops::select(ops::eq(zero_count, constant_like(x, 1)), of_rest, none),
                     ops::select(ops::eq(zero_count, none), of_rest / rest, none));
}

Values grads::reduce_prod(const Call& c, std::span<const Value>, std::span<const Value> dy) {
  const Product p(c.operands[0]);
  const Axes axes = axes_of(c.attrs, "axes");
  const auto all = [&](const Value& v) { return broadcast_back(v, axes, c.shape(0)); };
  return {all(dy[0]) * p.of_others(all(reduce_axes(ops::reduce_prod, p.rest, axes)),
                                   all(reduce_axes(ops::reduce_sum, p.zeros, axes)))};
}

// Distributes dy equally to all elements that are the maximum, or minimum.
Values grads::reduce_extreme(const Call& c, std::span<const Value> y, std::span<const Value> dy) {
  const Value x = c.operands[0];
  const Axes axes = axes_of(c.attrs, "axes");
  const Value hit = cast_to(ops::eq(x, broadcast_back(y[0], axes, x.shape())), x.dtype());
  const Value count = reduce_axes(ops::reduce_sum, hit, axes);
  return {hit * broadcast_back(dy[0] / count, axes, x.shape())};
}

Values grads::cumulative(const Call& c, std::span<const Value>, std::span<const Value> dy) {
  if (c.attrs.get<std::string>("kind") != "sum")
    throw UserError("cumulative: the derivative of kind '", c.attrs.get<std::string>("kind"),
                    "' is not supported, expected 'sum'");
  Attrs attrs = c.attrs;
  attrs.set("reverse", std::int64_t{attrs.integer_or("reverse", 0) == 0});
  return {ops::cumulative(dy[0], attrs)};
}

namespace {

// Contracts dy with the other operand over the latter's free axes; the result's axes are in the
// order of the differentiated operand: `batch`, `free` and `contract` are axes of that operand.
Value contraction_grad(Value dy, Value other, int first_other, const Axes& batch, const Axes& free,
                       const Axes& contract, const Axes& other_batch, const Axes& other_free,
                       const Axes& other_contract) {
  AxisPairs batches, sums;
  for (std::size_t i = 0; i < batch.size(); ++i)
    batches.emplace_back(static_cast<int>(i), other_batch[i]);
  for (std::size_t i = 0; i < other_free.size(); ++i)
    sums.emplace_back(first_other + static_cast<int>(i), other_free[i]);
  const Value d = dot_general(cast_to(dy, other.dtype()), other, batches, sums);
  // Axes of d: batches, free axes of the operand, contracted axes in the order of the other.
  Axes order(static_cast<std::size_t>(d.rank()));
  int next = 0;
  for (int axis : batch) order[static_cast<std::size_t>(axis)] = next++;
  for (int axis : free) order[static_cast<std::size_t>(axis)] = next++;
  std::map<int, int> partners;
  for (std::size_t i = 0; i < contract.size(); ++i)
    partners.emplace(other_contract[i], contract[i]);
  for (const auto& [_, axis] : partners) order[static_cast<std::size_t>(axis)] = next++;
  return transpose_by(d, order);
}

}  // namespace

Values grads::dot(const Call& c, std::span<const Value>, std::span<const Value> dy) {
  const Value a = c.operands[0], b = c.operands[1];
  if (!is_float(a.dtype())) return Values(2);
  const DotAxes x = dot_axes(c.attrs, a.rank(), b.rank());
  const auto batches = static_cast<int>(x.batch_a.size()), rows = static_cast<int>(x.free_a.size());
  return {contraction_grad(dy[0], b, batches + rows, x.batch_a, x.free_a, x.contract_a, x.batch_b,
                           x.free_b, x.contract_b),
          contraction_grad(dy[0], a, batches, x.batch_b, x.free_b, x.contract_b, x.batch_a,
                           x.free_a, x.contract_a)};
}

}  // namespace hone
