#include <algorithm>

#include "test/random/makers.h"

namespace hone::fuzz {

namespace {

bool is_numeric(DType t) { return t != DType::b1; }

bool affordable(Builder& b, const Dim& products) { return products.high() <= b.style.work; }

// Bytes may be summed as i32, floats in a wider float type.
void widen_sometimes(Builder& b, DType t, Attrs& attrs) {
  if (!b.random.chance(15)) return;
  if (byte_size(t) == 1 && is_integer(t)) attrs.set("dtype", DType::i32);
  if (is_float(t) && t != DType::f64) attrs.set("dtype", b.random.of({DType::f32, DType::f64}));
}

bool contains(const Axes& axes, int a) {
  return std::find(axes.begin(), axes.end(), a) != axes.end();
}

// The axes of x are batch, contracted or free; those of the other operand are in random order.
Value contracted(Builder& b, const Op& op) {
  Value x = b.ranked(b.random.of({0, 1, 2, 2, 3}), is_numeric);
  Axes contract;
  Axes batch;
  for (int i = 0; i < x.rank(); ++i) {
    int role = b.random.below(10);
    if (role < 4 || (i == x.rank() - 1 && contract.empty() && role < 9))
      contract.push_back(i);
    else if (role < 6)
      batch.push_back(i);
  }
  Axes of_other;  // axis of x, or -1 for a free one
  for (int a : batch) of_other.push_back(a);
  for (int a : contract) of_other.push_back(a);
  for (int i = b.random.of({0, 1, 1, 1, 2}); i > 0; --i) of_other.push_back(-1);
  for (std::size_t i = of_other.size(); i > 1; --i)
    if (b.random.chance(30)) std::swap(of_other[i - 1], of_other[i - 2]);
  Type t(x.dtype(), Shape{});
  Dims batch_pairs, contract_pairs;
  Dim products = x.shape().count();
  for (int a : of_other) {
    t.shape.dims.push_back(a < 0 ? b.size() : x.shape()[a]);
    if (a < 0) products = products * t.shape.dims.back();
  }
  for (int k = 0; k < t.rank(); ++k) {
    int a = of_other[static_cast<std::size_t>(k)];
    if (a < 0) continue;
    Dims& pairs = contains(batch, a) ? batch_pairs : contract_pairs;
    pairs.push_back(a);
    pairs.push_back(k);
  }
  if (!b.fits(t.shape) || !affordable(b, products)) return {};
  Value y = b.random.chance(60) ? b.weight(t) : b.operand(t);
  Attrs attrs = {{"batch", batch_pairs}, {"contract", contract_pairs}};
  widen_sometimes(b, x.dtype(), attrs);
  return op(Values{x, y}, attrs);
}

Value multiplied(Builder& b, const Op& op) {
  Value x = b.ranked(b.random.of({1, 2, 2, 2, 3}), is_numeric);
  Type t(x.dtype(), {x.shape()[-1]});
  if (b.random.chance(90)) t.shape.dims.push_back(b.size());
  if (x.rank() > 2 && b.random.chance(30))
    t.shape.dims.insert(t.shape.dims.begin(), x.shape().dims.begin(), x.shape().dims.end() - 2);
  if (!b.fits(t.shape) || !affordable(b, x.shape().count() * t.shape[-1])) return {};
  bool transposed = t.rank() == 2 && b.random.chance(25);
  if (transposed) std::swap(t.shape.dims[0], t.shape.dims[1]);
  Value y = b.random.chance(70) ? b.weight(t) : b.operand(t);
  if (transposed) y = transpose_matrix(y);
  Attrs attrs;
  widen_sometimes(b, x.dtype(), attrs);
  Value product = op(Values{x, y}, attrs);
  if (product.rank() == 0 || b.random.chance(50)) return product;
  return product +
         broadcast_to(b.weight({product.dtype(), {product.shape()[-1]}}), product.shape());
}

Value convolved(Builder& b, const Op& op) {
  Value x = b.find([](Value v) { return v.rank() >= 3 && v.rank() <= 5 && is_numeric(v.dtype()); });
  if (!x || b.random.chance(20)) {
    Shape s = b.shape(b.random.of({3, 4, 4, 4, 5}));
    x = b.operand({b.random.chance(90) ? b.style.real : b.style.whole, s});
  }
  const bool last = b.random.chance(50);
  const int spatial = x.rank() - 2, channel = last ? x.rank() - 1 : 1, first = last ? 1 : 2;
  if (!x.shape()[channel].is_number() || x.shape()[channel].number() == 0) return {};
  const std::int64_t channels = x.shape()[channel].number();
  std::int64_t groups = b.random.chance(25) ? channels : b.random.of({1, 1, 1, 2, 3});
  if (channels % groups) groups = 1;
  const std::int64_t outputs = groups * b.random.of({1, 1, 2, 3, 4, 8});
  Dims window, strides, dilations, low, high;
  for (int i = 0; i < spatial; ++i) {
    const Dim& size = x.shape()[first + i];
    std::int64_t k = b.random.of({1, 1, 2, 3, 3, 5});
    std::int64_t by = b.random.chance(20) ? 2 : 1;
    std::int64_t extent = (k - 1) * by + 1;
    low.push_back(b.random.of({0, 0, 1, 2}));
    high.push_back(b.random.of({0, 0, 1, 2}));
    if (size.low() + low.back().number() + high.back().number() < extent) k = by = 1;
    window.push_back(k);
    dilations.push_back(by);
    strides.push_back(b.random.of({1, 1, 1, 2, 3}));
  }
  Dims weights = window;
  Dims channel_sizes = {channels / groups, outputs};
  if (last) {
    weights.insert(weights.end(), channel_sizes.begin(), channel_sizes.end());
  } else {
    std::swap(channel_sizes[0], channel_sizes[1]);
    weights.insert(weights.begin(), channel_sizes.begin(), channel_sizes.end());
  }
  Dim products = x.shape().count() * Dim(outputs / groups) * product(window);
  if (!affordable(b, products)) return {};
  Value w = b.weight({x.dtype(), Shape(weights)});
  if (!w.shape().is_static()) return {};
  Attrs attrs = {{"strides", strides}, {"dilations", dilations}, {"pads_low", low},
                 {"pads_high", high},  {"groups", groups},       {"channels_last", int{last}}};
  widen_sometimes(b, x.dtype(), attrs);
  return op(Values{x, w}, attrs);
}

Value one_step(Builder& b, const Op& op) {
  Value h = b.find([](Value v) { return v.rank() == 2 && is_float(v.dtype()); });
  if (!h) h = b.operand({b.style.real, b.shape(2)});
  const Dim batch = h.shape()[0], hidden = h.shape()[1];
  if (!hidden.is_number() || hidden.number() > 32 || hidden.number() == 0) return {};
  Value gates = b.operand({h.dtype(), {batch, hidden * Dim(4)}});
  Value c = b.operand(h.type());
  Value r = b.weight({h.dtype(), {hidden * Dim(4), hidden}});
  Value y = op(Values{gates, h, c, r});
  b.keep(y.result(1));
  return y;
}

Value recurrence(Builder& b, const Op& op) {
  Value x = b.find([](Value v) { return v.rank() == 3 && is_float(v.dtype()); });
  if (!x) x = b.operand({b.style.real, b.shape(3)});
  const DType t = x.dtype();
  const Dim batch = x.shape()[1], inputs = x.shape()[2];
  const std::int64_t hidden = b.random.of({1, 2, 3, 8}), gates = 4 * hidden;
  if (!inputs.is_number() || !affordable(b, x.shape().count() * Dim(gates))) return {};
  if (x.shape()[0].high() > 40) return {};
  Values operands = {x};
  operands.push_back(b.weight({t, {gates, inputs}}));
  operands.push_back(b.weight({t, {gates, hidden}}));
  operands.push_back(b.weight({t, {gates}}));
  operands.push_back(b.operand({t, {batch, hidden}}));
  operands.push_back(b.operand({t, {batch, hidden}}));
  if (b.random.chance(30)) operands.push_back(b.operand(i32({batch})));
  Value y = op(operands, {{"reverse", b.random.below(2)}});
  b.keep(y.result(1));
  b.keep(y.result(2));
  return y;
}

// Heads may share keys; a mask holds numbers or bools, and may be broadcast.
Value attended(Builder& b, const Op& op) {
  Value q = tame(b, b.ranked(2, is_float), -4, 4);
  const int rank = q.rank();
  if (rank > 4 || q.shape()[-1].high() > 64 || q.shape()[-2].high() > 64) return {};
  Type k = q.type();
  k.shape[-2] = b.size();
  if (rank > 2 && b.random.chance(30))
    if (const Dim heads = k.shape[-3]; heads.is_number() && heads.number() % 2 == 0)
      k.shape[-3] = std::max<std::int64_t>(1, heads.number() / 2);
  Type v = k;
  if (b.random.chance(40)) v.shape[-1] = b.size();
  if (!b.fits(k.shape) || !b.fits(v.shape)) return {};
  if (!affordable(b, q.shape().count() * k.shape[-2] * Dim(2))) return {};
  Values operands = {q, b.operand(k), b.operand(v)};
  Attrs attrs = {{"scale", b.random.of({0.125, 0.3, 1.0, -0.5})}};
  if (b.random.chance(30)) attrs.set("causal", Dims{b.random.below(4)});
  if (b.random.chance(20)) attrs.set("softcap", b.random.of({1.0, 5.0}));
  if (b.random.chance(40)) {
    const bool is_bool = b.random.chance(50);
    Shape mask{b.random.chance(70) ? q.shape()[-2] : Dim(1), k.shape[-2]};
    operands.push_back(b.operand({is_bool ? DType::b1 : q.dtype(), mask}));
    if (is_bool) attrs.set("masked", b.random.of({-1e4, -30.0}));
  }
  return op(operands, std::move(attrs));
}

// The result of an attention, and a derivative of it.
Value attended_back(Builder& b, const Op& op) {
  const Value y = attended(b, ops::attention);
  if (!y || !y.is(ops::attention)) return {};
  const auto given = y.operands();
  Values operands(given.begin(), given.begin() + 3);
  operands.insert(operands.end(), {y, b.operand(y.type())});
  operands.insert(operands.end(), given.begin() + 3, given.end());
  const Value d = op(operands, y.attrs());
  for (std::uint32_t i = 1; i < d.result_count(); ++i) b.keep(d.result(i));
  return d;
}

constexpr Maker contraction_table[] = {
    {&ops::dot, 14, contracted},
    {&ops::matmul, 25, multiplied},
    {&ops::conv, 22, convolved},
    {&ops::attention, 6, attended},
    {&ops::lstm_cell, 3, one_step},
    {&ops::lstm, 3, recurrence},
    {&ops::attention_gradient, 3, attended_back},
};

}  // namespace

std::span<const Maker> contraction_makers() { return contraction_table; }

}  // namespace hone::fuzz
