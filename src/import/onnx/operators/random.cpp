// Random numbers: pure functions of a key, with one stream per node. The same plan always gives the
// same numbers.
#include <cmath>
#include <numbers>

#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/operators/list.h"

namespace hone::onnx {

namespace {

// Attribute seed, or the node's number if there is none.
std::uint64_t seed_of(NodeContext& c) {
  if (!c.has_attribute("seed")) return static_cast<std::uint64_t>(c.stream());
  return std::bit_cast<std::uint64_t>(c.real("seed", 0));
}

Value words(NodeContext& c, std::uint64_t seed, const Shape& shape) {
  auto number = [&](std::uint64_t n) {
    return constant(c.graph(), Array::scalar_int(static_cast<std::int64_t>(n), DType::u64));
  };
  return ops::random_bits(Values{number(seed), number(0)}, {{"shape", shape.dims}});
}

// In [0, 1): 24 bits each, so that every number is exact in f32.
Value uniform(NodeContext& c, std::uint64_t seed, const Shape& shape) {
  Value bits = words(c, seed, shape);
  return cast_to(ops::shift_right(bits, integer_like(bits, 8)), DType::f32) * 0x1p-24;
}

// Two uniform numbers give a normal one (Box and Muller).
Value normal(NodeContext& c, std::uint64_t seed, const Shape& shape) {
  Dims two = shape.dims;
  two.insert(two.begin(), 2);
  Value u = uniform(c, seed, Shape(two));
  Value radius = ops::sqrt(ops::log(1.0 - take_axis(u, 0, 0)) * -2.0);
  return radius * ops::cos(take_axis(u, 0, 1) * (2 * std::numbers::pi));
}

DType result_dtype(NodeContext& c, DType fallback) {
  return c.has_attribute("dtype") && c.integer("dtype", 0) != 0 ? c.dtype("dtype") : fallback;
}

Shape given_shape(NodeContext& c) {
  auto list = c.integers("shape");
  if (!list) c.fail("attribute 'shape' is missing; it is required");
  for (std::int64_t n : *list)
    if (n < 0) c.fail(cat("attribute 'shape' contains ", n, ", expected sizes of 0 or more"));
  return Shape(dims_of(*list));
}

Values uniform_of(NodeContext& c, const Shape& shape, DType dtype) {
  const double low = c.real("low", 0), high = c.real("high", 1);
  return {cast_to(uniform(c, seed_of(c), shape) * (high - low) + low, dtype)};
}
Values normal_of(NodeContext& c, const Shape& shape, DType dtype) {
  const double mean = c.real("mean", 0), scale = c.real("scale", 1);
  return {cast_to(normal(c, seed_of(c), shape) * scale + mean, dtype)};
}

Values random_uniform(NodeContext& c) {
  return uniform_of(c, given_shape(c), result_dtype(c, DType::f32));
}
Values random_normal(NodeContext& c) {
  return normal_of(c, given_shape(c), result_dtype(c, DType::f32));
}
Values random_uniform_like(NodeContext& c) {
  return uniform_of(c, c.in(0).shape(), result_dtype(c, c.in(0).dtype()));
}
Values random_normal_like(NodeContext& c) {
  return normal_of(c, c.in(0).shape(), result_dtype(c, c.in(0).dtype()));
}

// 1 with the probability that the operand holds.
Values bernoulli(NodeContext& c) {
  Value p = c.in(0);
  const DType dtype = result_dtype(c, p.dtype());
  Value u = cast_to(uniform(c, seed_of(c), p.shape()), p.dtype());
  return {cast_to(ops::lt(u, p), dtype)};
}

// Samples from rows of log probabilities: counts the cumulative sums below a random number.
Values multinomial(NodeContext& c) {
  Value logs = c.in(0);
  if (logs.rank() != 2) c.bad_input(0, "input", "a matrix, [batch, classes]");
  const DType dtype = result_dtype(c, DType::i32);
  const std::int64_t draws = c.integer("sample_size", 1);
  if (draws < 1) c.bad_attribute("sample_size", draws, "a positive integer");
  Value p = ops::softmax(cast_to(logs, DType::f32), {{"axis", std::int64_t{1}}});
  Value sums = ops::cumulative(p, {{"axis", std::int64_t{1}},
                                   {"kind", std::string("sum")},
                                   {"exclusive", std::int64_t{0}},
                                   {"reverse", std::int64_t{0}}});
  const Dim rows = logs.shape()[0], classes = logs.shape()[1];
  Value u = uniform(c, seed_of(c), {rows, draws, 1});
  Value below = cast_to(joined(ops::le, unsqueeze(sums, {1}), u), dtype);
  Value found = sum_over(below, {2});
  Value last = broadcast_to(size_value(c.graph(), classes - Dim(1), dtype), found.shape());
  return {ops::minimum(found, last)};  // the sums may end below 1
}

// In training each element is dropped with probability `ratio`, and the others are scaled up. The
// training flag may be data-dependent.
Values dropout(NodeContext& c) {
  for (std::string_view name : {"is_test", "consumed_inputs"}) c.ignore(name);
  Value x = c.in(0);
  const std::uint64_t seed = c.opset() < 12 ? 0
                             : c.has_attribute("seed")
                                 ? static_cast<std::uint64_t>(c.integer("seed", 0))
                                 : static_cast<std::uint64_t>(c.stream());
  c.ignore("ratio");
  const Value is_open = c.has(2) && c.decides(2) ? reshape_to(c.in(2), {}) : Value();
  const bool training = is_open || (c.has(2) && c.array(2).integer(0) != 0);
  const bool has_ratio = c.has(1);
  const DType mask = c.opset() < 10 ? x.dtype() : DType::b1;
  const Value all = integers_filled(c.graph(), mask, x.shape(), 1);
  if (!training) return {x, all};
  Value ratio =
      has_ratio ? cast_to(reshape_to(c.in(1), {}), DType::f32) : scalar(c.graph(), 0.5, DType::f32);
  Value u = uniform(c, seed, x.shape());
  Value kept = ops::le(broadcast_to(ratio, u.shape()), u);
  Value y = where_or(kept, x * cast_to(1.0 / (1.0 - ratio), x.dtype()), 0);
  if (!is_open) return {y, kept};
  Value trains = broadcast_to(is_open, x.shape());
  return {ops::select(trains, y, x), ops::select(trains, kept, all)};
}

constexpr ImportEntry random_table[] = {
    {"RandomUniform", random_uniform},
    {"RandomNormal", random_normal},
    {"RandomUniformLike", random_uniform_like},
    {"RandomNormalLike", random_normal_like},
    {"Bernoulli", bernoulli, 15},
    {"Multinomial", multinomial, 7},
    {"Dropout", dropout},
};

}  // namespace

std::span<const ImportEntry> random_imports() { return random_table; }

}  // namespace hone::onnx
