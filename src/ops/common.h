// Helpers for building graphs out of operations: for the importer, expansions, passes and the C++
// API. Not operations: each returns the nodes it names, or the value itself when there is nothing
// to do. The names differ from those of the ops, since inside `namespace ops` the ops would hide
// them.
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "ir/graph.h"
#include "ir/pattern.h"
#include "ops/ops.h"

namespace hone {

using Axes = std::vector<int>;

// Arithmetic on values of equal shape and dtype. An operand of rank 0 is broadcast to the other's
// shape; a number is rounded to the value's dtype and broadcast. Anything else must first be
// broadcast by broadcast_pair.
Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator+(Value a, double b);
Value operator-(Value a, double b);
Value operator*(Value a, double b);
Value operator/(Value a, double b);
Value operator+(double a, Value b);
Value operator-(double a, Value b);
Value operator*(double a, Value b);
Value operator/(double a, Value b);
Value operator-(Value a);

Pattern operator+(Pattern a, Pattern b);
Pattern operator-(Pattern a, Pattern b);
Pattern operator*(Pattern a, Pattern b);
Pattern operator/(Pattern a, Pattern b);
Pattern operator+(Pattern a, double b);
Pattern operator-(Pattern a, double b);
Pattern operator*(Pattern a, double b);
Pattern operator/(Pattern a, double b);
Pattern operator-(Pattern a);

// lt and le with swapped operands: false for NaN.
Value greater(Value a, Value b);
Value greater_equal(Value a, Value b);

// A number in every element, with x's type. The second form never converts an integer to double.
Value constant_like(Value x, double number);
Value integer_like(Value x, std::int64_t number);
// A size as a scalar of the given dtype; it is known once shapes are known.
Value size_value(Graph&, const Dim&, DType);
// 0, 1, 2, ... along one axis.
Value iota_value(Graph&, DType, const Shape&, int axis);

Value cast_to(Value, DType);
Value reshape_to(Value, Dims);
Value flatten(Value);  // rank 1
Value transpose_by(Value, std::span<const int> perm);
Value transpose_matrix(Value);  // swaps the last two axes
Value squeeze(Value, Axes);     // removes axes of size 1
// Inserts axes of size 1 at these positions of the result.
Value unsqueeze(Value, Axes);
Value concat_values(std::span<const Value>, int axis);
Value reverse_axes(Value, Axes);

// Elements start, start + step, ... along one axis; step may be negative.
Value slice_axis(Value, int axis, const Dim& start, const Dim& size, std::int64_t step = 1);
// Consecutive parts of the given sizes along one axis.
Values split_axis(Value, int axis, std::span<const Dim> sizes);
// One index of an axis, which is removed.
Value take_axis(Value, int axis, const Dim& index);
Value pad_with(Value, Value number, Dims low, Dims high);
// The slice of an axis at an i64 scalar index, kept as size 1; zeros if the index is out of range.
Value slice_at(Value, int axis, Value at);
// v with `slice`, of size 1 along the first axis, written at an i64 scalar index; v if the index is
// out of range.
Value updated_at(Value v, Value slice, Value at);

// Aligns trailing axes and explicitly repeats axes of size 1, as numpy does.
Value broadcast_to(Value, const Shape&);
// The broadcast shape of two shapes. Sizes that may differ at run time are recorded as equal (the
// message names `who` when they differ).
Shape broadcast_shape(Graph&, const Shape&, const Shape&, std::string_view who);
std::pair<Value, Value> broadcast_pair(Value, Value, std::string_view who);
Values broadcast_all(std::span<const Value>, std::string_view who);
// select, with broadcasting of all three.
Value where(Value condition, Value a, Value b);
// The gradient of a broadcast: sums over every axis along which `shape` was repeated.
Value sum_to(Value, const Shape& shape);

// Applies a reduction op over the axes; with `keep`, they remain with size 1.
Value reduce_axes(const Op&, Value, Axes, bool keep = false);
// Reinserts the reduced axes with size 1 and repeats them to `full`.
Value broadcast_back(Value reduced, const Axes&, const Shape& full);

// Pairs (axis of a, axis of b). Result axes: batch, free axes of a, free axes of b.
using AxisPairs = std::vector<std::pair<int, int>>;
Value dot_general(Value a, Value b, const AxisPairs& batch, const AxisPairs& contract,
                  std::optional<DType> dtype = std::nullopt);

// Windows over spatial axes, extended to all axes of a channels-first or channels-last value.
struct Window {
  Dims size, strides, dilations, pads_low, pads_high;  // one entry per spatial axis
  bool channels_last = false;
};
Value max_pool(Value, const Window&);
Value average_pool(Value, const Window&, bool include_pads);

// The dtype for sums of many elements: f32 for f16 and bf16, otherwise the dtype itself.
DType sum_dtype(DType);

// Axis -1 of rank 3 is 2. Throws UserError naming `who`.
int normal_axis(std::int64_t axis, int rank, std::string_view who);
Axes all_axes(int rank);
Axes axes_of(const Attrs&, AttrName);
Dims dims_of_axes(std::span<const int>);

}  // namespace hone
