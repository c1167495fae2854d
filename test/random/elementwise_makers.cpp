#include <cmath>

#include "test/random/makers.h"

namespace hone::fuzz {

namespace {

bool mostly(Builder& b) { return b.random.chance(85); }

}  // namespace

Value tame(Builder& b, Value x, double low, double high) {
  Range r = b.range(x);
  if ((r.low >= low && r.high <= high) || !mostly(b)) return x;
  if (!is_float(x.dtype())) return x;
  if (low >= 0 && b.random.chance(40)) x = ops::abs(x) + std::max(low, 0.25);
  r = b.range(x);
  if (r.low >= low && r.high <= high) return x;
  if (b.random.chance(50))
    return ops::clip(Values{x, constant_like(x, low), constant_like(x, high)});
  return ops::tanh(x) * ((high - low) / 2) + (high + low) / 2;
}

namespace {

Value unary(Builder& b, const Op& op) { return op(b.random.chance(85) ? b.real() : b.numeric()); }

// For functions that grow fast or are not defined everywhere.
Value unary_in_range(Builder& b, const Op& op) {
  Value x = b.real();
  return op(tame(b, x, op.low, op.high));
}

Value leaky(Builder& b, const Op& op) {
  Value x = b.real();
  return op(x, {{"alpha", b.random.of({0.01, 0.5, -0.5, 2.0, 0.0})}});
}

Value replayed(Builder& b, const Op& op) {
  Value x = b.recent();
  return op(x, {{"number", b.random.below(3)}});
}

Value binary(Builder& b, const Op& op) {
  Value x = b.numeric();
  Value y = b.operand(x.type());
  return b.random.chance(50) ? op(x, y) : op(y, x);
}

Value division(Builder& b, const Op& op) {
  Value x = b.numeric();
  Value y = b.operand(x.type());
  if (is_float(x.dtype()) && mostly(b)) y = ops::abs(y) + 0.5;
  return op(x, y);
}

Value power(Builder& b, const Op& op) {
  Value x = b.numeric();
  Value y = b.random.chance(50)
                ? broadcast_to(scalar(b.graph(), b.random.of({0.0, 1.0, 2.0, 3.0, 0.5}), x.dtype()),
                               x.shape())
                : b.operand(x.type());
  return op(tame(b, x, 0.1, 3), tame(b, y, -2, 3));
}

Value bitwise_operand(Builder& b) { return b.random.chance(50) ? b.whole() : b.boolean(); }

Value bits_unary(Builder& b, const Op& op) { return op(bitwise_operand(b)); }

Value bits(Builder& b, const Op& op) {
  Value x = bitwise_operand(b);
  return op(x, b.operand(x.type()));
}

Value shift(Builder& b, const Op& op) {
  Value x = b.whole();
  Value y = b.operand(x.type());
  if (mostly(b) && is_signed(y.dtype())) y = ops::abs(y);
  return op(x, y);
}

Value compare(Builder& b, const Op& op) {
  Value x = b.random.chance(10) && (op.name == "eq" || op.name == "ne") ? b.boolean() : b.numeric();
  return op(x, b.operand(x.type()));
}

Value selected(Builder& b, const Op& op) {
  Value x = b.recent();
  Value y = b.operand(x.type());
  Value c = b.random.chance(40) ? b.operand({DType::b1, x.shape()}) : Value();
  if (!c) {
    Value z = b.operand({b.style.real, x.shape()});
    c = ops::lt(z, constant_like(z, b.random.of({0.0, 0.5, -1.0})));
  }
  return op(c, x, y);
}

Value clipped(Builder& b, const Op& op) {
  Value x = b.numeric();
  double low = is_signed(x.dtype()) ? b.random.of({-1.0, 0.0, -2.0}) : 0;
  double high = b.random.of({1.0, 6.0, 0.0});
  if (b.random.chance(70)) return op(x, constant_like(x, low), constant_like(x, high));
  Value l = b.operand(x.type());
  return op(x, l, b.operand(x.type()));
}

Value casted(Builder& b, const Op& op) {
  Value x = b.recent();
  DType to = b.dtype();
  if (to == x.dtype())
    to = b.random.of({DType::f32, DType::f16, DType::bf16, DType::i32, DType::u8});
  return op(x, {{"dtype", to}});
}

// Floats are reinterpreted as integers only if they are parameters or constants: the bits of a NaN
// or of a rounded number are not reliable.
Value bits_cast(Builder& b, const Op& op) {
  Value x = b.find([](Value v) {
    return v.dtype() != DType::b1 &&
           (is_integer(v.dtype()) || v.is(ops::param) || v.is(ops::constant));
  });
  if (!x) x = b.whole();
  static constexpr DType same[][4] = {{DType::i8, DType::u8, DType::i8, DType::u8},
                                      {DType::i16, DType::u16, DType::f16, DType::bf16},
                                      {DType::i32, DType::u32, DType::f32, DType::f32},
                                      {DType::i64, DType::u64, DType::f64, DType::f64}};
  int row = static_cast<int>(std::log2(byte_size(x.dtype())));
  return op(x, {{"dtype", same[row][b.random.below(4)]}});
}

Value counted(Builder& b, const Op& op) {
  Value like = b.recent();
  Shape shape = like && like.rank() > 0 ? like.shape() : b.shape(b.random.between(1, 3));
  DType t =
      b.random.of({b.style.real, b.style.whole, DType::f32, DType::i64, DType::i32, DType::u8});
  return b.graph().intern(
      op, {}, {{"dtype", t}, {"shape", shape.dims}, {"axis", b.random.below(shape.rank())}});
}

Value random_words(Builder& b, const Op& op) {
  Value key = b.operand({DType::u64, Shape{}});
  Value counter = b.operand({DType::u64, Shape{}});
  return op(Values{key, counter}, {{"shape", b.shape().dims}});
}

constexpr Maker elementwise_table[] = {
    {&ops::add, 40, binary},
    {&ops::sub, 25, binary},
    {&ops::mul, 40, binary},
    {&ops::div, 15, division},
    {&ops::rem, 4, division},
    {&ops::pow, 5, power},
    {&ops::maximum, 12, binary},
    {&ops::minimum, 12, binary},
    {&ops::mod, 4, division},
    {&ops::neg, 8, unary},
    {&ops::abs, 6, unary},
    {&ops::sign, 4, unary},
    {&ops::exp, 8, unary_in_range},
    {&ops::log, 5, unary_in_range},
    {&ops::sqrt, 6, unary_in_range},
    {&ops::tanh, 10, unary},
    {&ops::erf, 4, unary},
    {&ops::sin, 4, unary},
    {&ops::cos, 4, unary},
    {&ops::floor, 3, unary},
    {&ops::ceil, 3, unary},
    {&ops::round, 3, unary},
    {&ops::trunc, 3, unary},
    {&ops::recip, 4, unary_in_range},
    {&ops::rsqrt, 4, unary_in_range},
    {&ops::square, 6, unary},
    {&ops::relu, 15, unary},
    {&ops::leaky_relu, 4, leaky},
    {&ops::sigmoid, 8, unary},
    {&ops::silu, 6, unary},
    {&ops::gelu, 5, unary},
    {&ops::gelu_tanh, 3, unary},
    {&ops::softplus, 3, unary},
    {&ops::clip, 8, clipped},
    {&ops::bit_not, 4, bits_unary},
    {&ops::bit_and, 4, bits},
    {&ops::bit_or, 4, bits},
    {&ops::bit_xor, 4, bits},
    {&ops::shift_left, 3, shift},
    {&ops::shift_right, 3, shift},
    {&ops::eq, 4, compare},
    {&ops::ne, 3, compare},
    {&ops::lt, 6, compare},
    {&ops::le, 4, compare},
    {&ops::select, 15, selected},
    {&ops::cast, 20, casted},
    {&ops::bitcast, 4, bits_cast},
    {&ops::iota, 6, counted},
    {&ops::random_bits, 3, random_words},
    {&ops::replay, 2, replayed},
};

}  // namespace

std::span<const Maker> elementwise_makers() { return elementwise_table; }

}  // namespace hone::fuzz
