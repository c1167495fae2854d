#include <algorithm>

#include "test/random/makers.h"

namespace hone::fuzz {

namespace {

bool is_numeric(DType t) { return t != DType::b1; }

Axes some_axes(Builder& b, int rank) {
  Axes axes;
  if (rank > 0 && b.random.chance(50)) return {rank - 1};
  for (int i = 0; i < rank; ++i)
    if (b.random.chance(50)) axes.push_back(i);
  return axes;
}

// Half of the reductions are broadcast back over the reduced axes, as norms do.
Value reduced_over(Builder& b, const Op& op, Value x) {
  Axes axes = some_axes(b, x.rank());
  Value r = op(x, {{"axes", dims_of_axes(axes)}});
  if (b.random.chance(50)) return r;
  b.keep(r);
  return b.random.chance(30) ? reduce_axes(op, x, axes, true) : broadcast_back(r, axes, x.shape());
}

Value reduced(Builder& b, const Op& op) {
  return reduced_over(b, op, b.random.chance(80) ? b.ranked(1, is_numeric) : b.numeric());
}
Value reduced_bools(Builder& b, const Op& op) { return reduced_over(b, op, b.boolean()); }
Value reduced_reals(Builder& b, const Op& op) { return reduced_over(b, op, b.ranked(1, is_float)); }

Value position(Builder& b, const Op& op) {
  Value x = b.ranked(1, is_numeric);
  DType t = b.random.of({DType::i64, DType::i32});
  return op(x, {{"axis", b.random.below(x.rank())}, {"dtype", t}});
}

Value running(Builder& b, const Op& op) {
  Value x = b.ranked(1, is_numeric);
  std::string kind = b.random.of<const char*>({"sum", "sum", "prod", "max", "min"});
  return op(x, {{"axis", b.random.below(x.rank())},
                {"kind", kind},
                {"exclusive", b.random.below(2)},
                {"reverse", b.random.below(2)}});
}

Value sorted(Builder& b, const Op& op) {
  Value x = b.ranked(1, is_numeric);
  Value y = op(x, {{"axis", b.random.below(x.rank())}, {"descending", b.random.below(2)}});
  b.keep(y.result(1));
  return y;
}

// Windows over at most two axes, often the last two, as in images.
Attrs window_over(Builder& b, Value x) {
  const auto rank = static_cast<std::size_t>(x.rank());
  Dims window(rank, 1), strides(rank, 1), dilations(rank, 1), low(rank, 0), high(rank, 0);
  std::size_t first = b.random.chance(50) && rank > 2 ? rank - 2 : b.random.below(x.rank());
  if (b.random.chance(30) && rank == 4) first = 1;
  for (std::size_t i = first; i < std::min(first + 2, rank); ++i) {
    const Dim& size = x.shape().dims[i];
    std::int64_t k = b.random.between(1, 3);
    if (size.low() < k) continue;
    window[i] = k;
    strides[i] = b.random.of({1, 1, 2, 3});
    if (b.random.chance(20) && size.low() > 2 * (k - 1)) dilations[i] = 2;
    // A window may lie entirely in the padding, but such windows test little.
    if (b.random.chance(30)) low[i] = b.random.between(0, static_cast<int>(k) - 1);
    if (b.random.chance(30)) high[i] = b.random.between(0, static_cast<int>(k) - 1);
  }
  return {{"window", window},
          {"strides", strides},
          {"dilations", dilations},
          {"pads_low", low},
          {"pads_high", high}};
}

Value pooled(Builder& b, const Op& op) {
  Value x = b.ranked(b.random.of({1, 3, 4}), is_numeric);
  Attrs attrs = window_over(b, x);
  attrs.set("kind", std::string(b.random.of<const char*>({"max", "max", "sum", "min"})));
  return op(x, attrs);
}

Value averaged(Builder& b, const Op& op) {
  Value x = b.ranked(b.random.of({1, 3, 4}), is_float);
  Attrs attrs = window_over(b, x);
  attrs.set("include_pads", b.random.below(2));
  return op(x, attrs);
}

Value along_axis(Builder& b, const Op& op) {
  Value x = b.ranked(1, is_float);
  int axis = b.random.chance(70) ? x.rank() - 1 : b.random.below(x.rank());
  return op(x, {{"axis", axis}});
}

Shape tail(Value x, int axis) {
  return Shape(Dims(x.shape().dims.begin() + axis, x.shape().dims.end()));
}

Value normed(Builder& b, const Op& op) {
  Value x = b.ranked(1, is_float);
  int axis = b.random.chance(70) ? x.rank() - 1 : b.random.below(x.rank());
  Values operands = {x, b.weight({x.dtype(), tail(x, axis)})};
  if (&op == &ops::layer_norm && b.random.chance(60))
    operands.push_back(b.weight({x.dtype(), tail(x, axis)}));
  return op(operands, {{"axis", axis}, {"epsilon", b.random.of({1e-5, 1e-3, 0.5})}});
}

Value batch_normed(Builder& b, const Op& op) {
  Value x = b.ranked(1, is_float);
  int axis = b.random.below(x.rank());
  const Type t(x.dtype(), {x.shape()[axis]});
  Values operands = {x};
  for (int i = 0; i < 3; ++i) operands.push_back(b.weight(t));
  operands.push_back(ops::square(b.weight(t)));
  return op(operands, {{"axis", axis}, {"epsilon", b.random.of({1e-5, 1e-2})}});
}

constexpr Maker row_table[] = {
    {&ops::reduce_sum, 18, reduced},
    {&ops::reduce_max, 10, reduced},
    {&ops::reduce_min, 6, reduced},
    {&ops::reduce_prod, 4, reduced},
    {&ops::reduce_and, 4, reduced_bools},
    {&ops::reduce_or, 4, reduced_bools},
    {&ops::argmax, 4, position},
    {&ops::argmin, 3, position},
    {&ops::reduce_window, 8, pooled},
    {&ops::cumulative, 6, running},
    {&ops::sort, 4, sorted},
    {&ops::mean, 8, reduced_reals},
    {&ops::variance, 5, reduced_reals},
    {&ops::softmax, 12, along_axis},
    {&ops::log_softmax, 5, along_axis},
    {&ops::layer_norm, 10, normed},
    {&ops::rms_norm, 6, normed},
    {&ops::batch_norm, 6, batch_normed},
    {&ops::avg_pool, 6, averaged},
};

}  // namespace

std::span<const Maker> row_makers() { return row_table; }

}  // namespace hone::fuzz
