// Recipes: patterns that fusion, raising, contraction and convolution match, computations that can
// run in place, and graph shapes from the bug lists of other compilers' fuzzers (RELIABILITY:
// NNSmith).
#include <algorithm>

#include "test/random/makers.h"

namespace hone::fuzz {

namespace {

bool is_numeric(DType t) { return t != DType::b1; }

Value row_value(Builder& b) {
  Value x = b.ranked(1, is_float);
  Range r = b.range(x);
  return r.high - r.low > 60 ? ops::tanh(x) : x;
}

Value softmax_spelled(Builder& b) {
  Value x = row_value(b);
  Axes last = {x.rank() - 1};
  Value e = ops::exp(x - broadcast_to(reduce_axes(ops::reduce_max, x, last, true), x.shape()));
  if (b.random.chance(20)) b.keep(e);
  Value sum = broadcast_to(reduce_axes(ops::reduce_sum, e, last, true), x.shape());
  return b.random.chance(20) ? e * ops::recip(sum) : e / sum;
}

Value layer_norm_spelled(Builder& b) {
  Value x = row_value(b);
  Axes last = {x.rank() - 1};
  Value mean = reduce_axes(ops::mean, x, last, true);
  Value centred = x - broadcast_to(mean, x.shape());
  Value variance = reduce_axes(ops::mean, ops::square(centred), last, true);
  Value scale =
      b.random.chance(50) ? ops::rsqrt(variance + 1e-5) : 1.0 / ops::sqrt(variance + 1e-5);
  Value y = centred * broadcast_to(scale, x.shape());
  return y * broadcast_to(b.weight({x.dtype(), {x.shape()[-1]}}), x.shape());
}

Value gelu_spelled(Builder& b) {
  Value x = b.real();
  return x * (ops::erf(x * 0.7071067811865476) + 1.0) * 0.5;
}

Value silu_spelled(Builder& b) {
  Value x = b.real();
  return b.random.chance(50) ? x * ops::sigmoid(x) : x / (ops::exp(-x) + 1.0);
}

Value attention(Builder& b) {
  Value q = b.ranked(2, is_float);
  if (q.rank() > 4 || q.shape()[-1].high() > 64 || q.shape()[-2].high() > 64) return {};
  Type other = q.type();
  other.shape[-2] = b.size();
  if (!b.fits(other.shape) || q.shape().count().high() * 64 > b.style.work) return {};
  Value k = b.operand(other);
  Value v = b.operand(other);
  Value scores = ops::matmul(q, transpose_matrix(k)) * 0.3;
  if (b.random.chance(30)) {
    Value mask = b.operand({DType::b1, scores.shape()});
    scores = ops::select(mask, scores, constant_like(scores, b.random.of({-1e4, -30.0})));
  }
  return ops::matmul(ops::softmax(scores, {{"axis", scores.rank() - 1}}), v);
}

Attrs plain_conv(int spatial, int pad, bool last) {
  const auto n = static_cast<std::size_t>(spatial);
  return {{"strides", Dims(n, 1)},
          {"dilations", Dims(n, 1)},
          {"pads_low", Dims(n, pad)},
          {"pads_high", Dims(n, pad)},
          {"groups", 1},
          {"channels_last", int{last}}};
}

Value conv_block(Builder& b) {
  Value x = b.find([](Value v) { return v.rank() == 4 && is_float(v.dtype()); });
  if (!x) x = b.operand({b.style.real, b.shape(4)});
  if (!x.shape()[1].is_number() || x.shape()[1].number() == 0) return {};
  const std::int64_t in = x.shape()[1].number(), out = b.random.chance(50) ? in : 4;
  if (x.shape().count().high() * 9 * out > b.style.work) return {};
  Value w = b.weight({x.dtype(), {out, in, 3, 3}});
  Value y = ops::conv(Values{x, w}, plain_conv(2, 1, false));
  const Type channel(x.dtype(), {out});
  if (b.random.chance(60)) {
    Values operands = {y};
    for (int i = 0; i < 3; ++i) operands.push_back(b.weight(channel));
    operands.push_back(ops::abs(b.weight(channel)) + 0.1);
    y = ops::batch_norm(operands, {{"axis", 1}, {"epsilon", 1e-5}});
  } else {
    y = y + broadcast_to(reshape_to(b.weight(channel), {out, 1, 1}), y.shape());
  }
  if (out == in && b.random.chance(70)) y = y + x;
  return b.random.chance(70) ? ops::relu(y) : y;
}

// A convolution between the transposes of another layout.
Value conv_between_layouts(Builder& b) {
  Value x = b.find([](Value v) { return v.rank() == 4 && is_float(v.dtype()); });
  if (!x) x = b.operand({b.style.real, b.shape(4)});
  if (!x.shape()[1].is_number() || x.shape()[1].number() == 0) return {};
  const std::int64_t in = x.shape()[1].number(), out = b.random.of({2, 3, 8});
  if (x.shape().count().high() * out > b.style.work) return {};
  Value w = b.weight({x.dtype(), {1, 1, in, out}});
  Value y = ops::conv(Values{transpose_by(x, Axes{0, 2, 3, 1}), w}, plain_conv(2, 0, true));
  return transpose_by(ops::relu(y), Axes{0, 3, 1, 2});
}

Value dense(Builder& b) {
  Value x = b.ranked(2, is_float);
  Dim n = b.size();
  Value w = b.weight({x.dtype(), {x.shape()[-1], n}});
  if (x.shape().count().high() * n.high() > b.style.work) return {};
  Value y = ops::matmul(x, w);
  y = y + broadcast_to(b.weight({x.dtype(), {n}}), y.shape());
  const Op* activations[] = {&ops::relu, &ops::gelu, &ops::tanh, &ops::sigmoid, &ops::silu};
  return (*activations[b.random.below(5)])(y);
}

// The heads of an attention: a product split into two axes and transposed.
Value split_heads(Builder& b) {
  Value x = b.find([](Value v) { return v.rank() == 3 && is_float(v.dtype()); });
  if (!x) x = b.operand({b.style.real, b.shape(3)});
  if (x.shape().count().high() * 6 > b.style.work) return {};
  Value y = ops::matmul(x, b.weight({x.dtype(), {x.shape()[2], 6}}));
  y = reshape_to(y, {x.shape()[0], x.shape()[1], 2, 3});
  return transpose_by(y, Axes{0, 2, 1, 3});
}

// The last use of each value creates another value of the same size.
Value in_place_chain(Builder& b) {
  Value x = b.real();
  for (int i = b.random.between(2, 5); i > 0; --i) {
    Value y = b.operand(x.type());
    x = b.random.chance(50) ? x * 0.5 + y : ops::maximum(x - y, x * 0.25);
  }
  return x;
}

Value views_of_views(Builder& b) {
  Value x = b.ranked(2);
  for (int i = b.random.between(2, 4); i > 0; --i) {
    int axis = b.random.below(x.rank());
    const Dim n = x.shape()[axis];
    switch (b.random.below(5)) {
      case 0:
        x = transpose_matrix(x);
        break;
      case 1:
        if (n.low() > 1) x = slice_axis(x, axis, 1, n - Dim(1));
        break;
      case 2:
        x = reverse_axes(x, {axis});
        break;
      case 3: {
        const Value both[] = {x, x};
        if (b.fits(Shape{x.shape().count() * Dim(2)})) x = concat_values(both, axis);
        break;
      }
      default:
        x = slice_axis(x, axis, 0, floor_div(n + Dim(1), 2), 2);
    }
  }
  return x;
}

// Parts of a value are processed separately and joined again.
Value split_and_join(Builder& b) {
  Value x = b.ranked(1, is_numeric);
  int axis = b.random.below(x.rank());
  const Dim n = x.shape()[axis];
  if (n.low() < 2) return {};
  Value a = slice_axis(x, axis, 0, 1);
  Value rest = slice_axis(x, axis, 1, n - Dim(1));
  Value parts[] = {b.random.chance(50) ? ops::neg(a) : a, rest + rest};
  if (b.random.chance(50)) std::swap(parts[0], parts[1]);
  return concat_values(parts, axis);
}

// ---- graph shapes from bugs that other fuzzers found

Value joined_then_repeated(Builder& b) {
  Value x = b.ranked(1);
  Value both = ops::concat(Values{x, b.operand(x.type())}, {{"axis", 0}});
  Dims to = both.shape().dims;
  to.insert(to.begin(), b.size());
  return b.fits(Shape(to)) ? broadcast_to(both, Shape(to)) : Value();
}

Value repeated_then_divided(Builder& b) {
  Value x = b.real();
  Dims to = x.shape().dims;
  to.insert(to.begin(), b.size());
  if (!b.fits(Shape(to))) return {};
  Value wide = broadcast_to(x, Shape(to));
  return wide / (ops::abs(wide) + 0.5);
}

Value choice_with_broadcast(Builder& b) {
  Value x = b.ranked(1);
  Value c = broadcast_to(b.operand({DType::b1, {x.shape()[-1]}}), x.shape());
  return ops::select(c, x, broadcast_to(b.scalar_operand(x.dtype()), x.shape()));
}

Value bytes(Builder& b) {
  Value x = cast_to(b.recent(), DType::u8);
  Value y = ops::neg(x) - b.operand(x.type()) * integer_like(x, 3);
  return b.random.chance(50) ? y : cast_to(y, b.style.real);
}

Value scalar_rows(Builder& b) {
  Value x = b.operand({b.style.real, Shape{}});
  Value r = ops::reduce_sum(x, {{"axes", Dims{}}});
  Value row = ops::softmax(reshape_to(r, {1}), {{"axis", 0}});
  return ops::matmul(row, row) + ops::reduce_max(row, {{"axes", Dims{0}}});
}

Value relu_then_clip(Builder& b) {
  Value x = ops::relu(b.numeric());
  Value y = ops::clip(Values{x, constant_like(x, 1), constant_like(x, 3)});
  return b.random.chance(50) ? ops::minimum(y, constant_like(x, 2)) : y;
}

Value every_second_bool(Builder& b) {
  Value x = b.boolean();
  if (x.rank() == 0) return {};
  int axis = b.random.below(x.rank());
  return slice_axis(x, axis, 0, floor_div(x.shape()[axis] + Dim(1), 2), 2);
}

Value position_after_layout(Builder& b) {
  Value x = transpose_matrix(b.ranked(2, is_numeric));
  const Op& op = b.random.chance(50) ? ops::argmin : ops::argmax;
  return op(x, {{"axis", b.random.below(x.rank())}, {"dtype", DType::i64}});
}

Value transposed_bias(Builder& b) {
  Value x = b.find([](Value v) { return v.rank() == 2 && is_float(v.dtype()); });
  if (!x) x = b.operand({b.style.real, b.shape(2)});
  Dim n = b.size();
  if (x.shape().count().high() * n.high() > b.style.work) return {};
  Value y = ops::matmul(x, b.weight({x.dtype(), {x.shape()[1], n}}));
  return y * 0.5 + transpose_matrix(b.weight({x.dtype(), {n, x.shape()[0]}}));
}

Value to_integer_and_bool(Builder& b) {
  Value x = cast_to(b.real() * 1.5, b.random.of({DType::i32, DType::i8, DType::u8, DType::i64}));
  return cast_to(cast_to(x, DType::b1), b.style.real);
}

Value huge_window(Builder& b) {
  Value x = b.ranked(1, is_float);
  const std::int64_t n = x.shape()[-1].low();
  if (n < 1 || n > 64) return {};
  Dims window(static_cast<std::size_t>(x.rank()), 1), zero(window.size(), 0);
  window.back() = n;
  return ops::reduce_window(x, {{"kind", std::string(b.random.chance(50) ? "max" : "sum")},
                                {"window", window},
                                {"strides", Dims(window.size(), 1)},
                                {"dilations", Dims(window.size(), 1)},
                                {"pads_low", zero},
                                {"pads_high", zero}});
}

// Three reductions over the same axis.
Value shared_statistics(Builder& b) {
  Value x = b.ranked(1, is_float);
  Value sum = reduce_axes(ops::reduce_sum, x, {x.rank() - 1});
  Value most = reduce_axes(ops::reduce_max, x, {x.rank() - 1});
  b.keep(sum);
  return (sum - most) * 0.5 + reduce_axes(ops::mean, ops::square(x), {x.rank() - 1});
}

Value nearest_resize(Builder& b) {
  Value x = b.ranked(1);
  int axis = b.random.below(x.rank());
  const std::int64_t n = x.shape()[axis].low();
  if (n < 1) return {};
  std::vector<std::int64_t> at;
  for (std::int64_t i = 0; i < 2 * n; ++i) at.push_back(i / 2);
  Array a = Array::from_ints(at);
  return ops::gather(Values{x, constant(b.graph(), a)}, {{"axis", axis}});
}

Value embedding(Builder& b) {
  Value table = b.weight({b.style.real, {b.random.between(3, 9), b.random.of({4, 8, 16, 33})}});
  Value at = b.indices(b.shape(b.random.of({1, 2})), table.shape()[0]);
  if (at.shape().count().high() * 33 > b.style.limit) return {};
  return ops::gather(Values{table, at}, {{"axis", 0}});
}

constexpr Motif recipes[] = {
    {"softmax-spelled", softmax_spelled},
    {"layer-norm-spelled", layer_norm_spelled},
    {"gelu-spelled", gelu_spelled},
    {"silu-spelled", silu_spelled},
    {"attention", attention},
    {"conv-block", conv_block},
    {"conv-between-layouts", conv_between_layouts},
    {"dense", dense},
    {"split-heads", split_heads},
    {"in-place-chain", in_place_chain},
    {"views-of-views", views_of_views},
    {"split-and-join", split_and_join},
    {"joined-then-repeated", joined_then_repeated},
    {"repeated-then-divided", repeated_then_divided},
    {"choice-with-broadcast", choice_with_broadcast},
    {"bytes", bytes},
    {"scalar-rows", scalar_rows},
    {"relu-then-clip", relu_then_clip},
    {"every-second-bool", every_second_bool},
    {"position-after-layout", position_after_layout},
    {"transposed-bias", transposed_bias},
    {"to-integer-and-bool", to_integer_and_bool},
    {"huge-window", huge_window},
    {"shared-statistics", shared_statistics},
    {"nearest-resize", nearest_resize},
    {"embedding", embedding},
};

}  // namespace

std::span<const Motif> motifs() { return recipes; }

}  // namespace hone::fuzz
