// Values that every front end builds: numbers, broadcasting, reductions along axes, sizes that must
// be equal. Not operations, and independent of what is imported.
#pragma once

#include <span>
#include <string_view>

#include "ops/common.h"

namespace hone::build {

// An elementwise operation of two values of one dtype, with broadcasting.
Value joined(const Op&, Value a, Value b);
inline Value plus(Value a, Value b) { return joined(ops::add, a, b); }
inline Value minus(Value a, Value b) { return joined(ops::sub, a, b); }
inline Value times(Value a, Value b) { return joined(ops::mul, a, b); }
inline Value over(Value a, Value b) { return joined(ops::div, a, b); }

// A number in every element of a value of x's type. Any dtype.
Value number_like(Value x, double number);
// The same for a given shape.
Value filled(Graph&, DType, const Shape&, double number);
Value integers_filled(Graph&, DType, const Shape&, std::int64_t number);
inline Value integer(Graph& g, std::int64_t n, DType t = DType::i64) {
  return constant(g, Array::scalar_int(n, t));
}
// A list of numbers, rank 1.
Value integer_list(Graph&, const std::vector<std::int64_t>&, DType = DType::i64);
// Elements of any dtype. Strings are stored by their bytes: their numbers are not valid later.
Value constant_value(Graph&, const Array&);
// 0, 1, 2, ... : rank 1.
Value counted(Graph&, DType, const Dim& count);

// [C] along axis 1 of `shape`, repeated along all others.
Value along_channels(Value v, const Shape& shape);
// A value of rank 1 along one axis of a value of `rank` axes, all others being of size 1.
Value along(Value v, int axis, int rank);
Value mean_over(Value x, const Axes&, bool keep);
Value sum_over(Value x, const Axes&, bool keep = false);
Value max_over(Value x, const Axes&, bool keep = false);
// condition ? a : b, where b is a number.
Value where_or(Value condition, Value a, double b);
Value both(Value a, Value b);  // and, broadcast

// The gathered elements have the shape of the index, whose axes other than `axis` broadcast to
// those of x.
Value take_along(Value x, Value index, int axis);

// [.., m, k] and [.., k, n]: if k is a number in one, it becomes a number in both, so that weights
// stay known.
std::pair<Value, Value> of_one_depth(Value a, Value b);

// v with the given sizes: axes that differ are checked at run time (unless they are known to be
// equal). Fails when the rank or a size cannot be equal. `what` names v in errors.
Value with_sizes(Value v, const Dims& sizes, std::string_view what);
// The size that stands for several which must be equal: a number if there is one, else the first.
Dim settled(std::span<const Dim> equal_sizes);

Dims ones(std::size_t n);

}  // namespace hone::build
