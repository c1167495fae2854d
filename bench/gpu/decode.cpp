#include "decode.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/common.h"

namespace hone {

Array random_weight(DType t, std::vector<std::int64_t> dims, std::mt19937_64& random) {
  Array a = Array::zeros(t, std::move(dims));
  constexpr std::int64_t few = 1 << 16;
  std::normal_distribution<double> number;
  const std::int64_t made = std::min(few, a.count());
  for (std::int64_t i = 0; i < made; ++i) a.set_real(i, 0.02 * number(random));
  const std::span<std::byte> bytes = a.writable_bytes();
  const auto piece = static_cast<std::size_t>(made * byte_size(t));
  for (std::size_t at = piece; at < bytes.size(); at += piece)
    std::copy_n(bytes.begin(), std::min(piece, bytes.size() - at),
                bytes.begin() + static_cast<std::ptrdiff_t>(at));
  return a;
}

namespace {

class Writer {
 public:
  Writer(Builder& b, DType t, const DecodeSizes& s)
      : b_(b), type_(t), sizes_(s), width_(s.heads * s.depth) {}

  void run() {
    const Value token = b_.input(Type(DType::i64, Shape{1}), "token"),
                position = b_.input(Type(DType::i64, Shape{}), "position");
    const Value words = weight({sizes_.words, width_}), places = weight({sizes_.length, width_});
    Value x = ops::gather(Values{words, token}, {{"axis", 0}}) +
              ops::gather(Values{places, reshape_to(position, {1})}, {{"axis", 0}});
    const Shape length{sizes_.length};
    const Value number = iota_value(x.graph(), DType::i64, length, 0);
    const Value is_past = ops::le(number, broadcast_to(position, length));
    const Value zero = cast_to(number * integer_like(number, 0), type_);
    const Value mask = reshape_to(
        where(is_past, zero, constant_like(zero, -std::numeric_limits<double>::infinity())),
        {1, sizes_.length});
    for (std::int64_t i = 0; i < sizes_.layers; ++i) x = layer(x, mask, position, i);
    b_.output(dot_general(norm(x), words, {}, {{1, 1}}), "logits");
    for (const auto& [value, name] : caches_) b_.output(value, name);
  }

 private:
  Value weight(std::vector<std::int64_t> dims) {
    return b_.weight(random_weight(type_, std::move(dims), random_));
  }

  Value norm(Value x) {
    return ops::layer_norm(Values{x, weight({width_}), weight({width_})},
                           {{"axis", 1}, {"epsilon", 1e-5}});
  }
  Value linear(Value x, std::int64_t columns) {
    const Value y = ops::matmul(x, weight({x.shape()[-1].number(), columns}));
    return y + broadcast_to(weight({columns}), y.shape());
  }
  // Reshapes [rows, heads * depth] to [1, heads, rows, depth].
  Value heads_of(Value x) const {
    const Dim rows = x.shape()[0];
    const Value split = reshape_to(x, {rows, sizes_.heads, sizes_.depth});
    return reshape_to(transpose_by(split, Axes{1, 0, 2}), {1, sizes_.heads, rows, sizes_.depth});
  }

  Value layer(Value x, Value mask, Value position, std::int64_t number) {
    const Value qkv = linear(norm(x), 3 * width_);
    const auto part = [&](int i) { return slice_axis(qkv, 1, i * width_, width_); };
    const auto cached = [&](int i, const char* name) {
      const std::string input = cat(name, number);
      const Value before = b_.donated_input(Type(type_, Shape{sizes_.length, width_}), input);
      const Value after = updated_at(before, part(i), position);
      caches_.emplace_back(after, input + "_next");
      return heads_of(after);
    };
    const Value k = cached(1, "k"), v = cached(2, "v");
    const Value y = ops::attention(Values{heads_of(part(0)), k, v, mask},
                                   {{"scale", 1.0 / std::sqrt(static_cast<double>(sizes_.depth))}});
    x = x + linear(reshape_to(y, {1, width_}), width_);
    return x + linear(ops::gelu_tanh(linear(norm(x), 4 * width_)), width_);
  }

  Builder& b_;
  DType type_;
  DecodeSizes sizes_;
  std::int64_t width_;
  std::mt19937_64 random_{7};
  std::vector<std::pair<Value, std::string>> caches_;
};

}  // namespace

void build_decode(Builder& b, DType t, const DecodeSizes& s) { Writer(b, t, s).run(); }

}  // namespace hone
