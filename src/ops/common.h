// Short spellings for building graphs out of operations: for the importer, expansions, passes and
// the C++ API. Not operations: each gives the nodes it names, or the value itself when there is
// nothing to do. Names differ from those of the ops, because inside `namespace ops` the latter hide
// the former.
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "ir/op.h"
#include "ir/pattern.h"
#include "ops/ops.h"

namespace hone {

using Axes = std::vector<int>;

// Arithmetic on values of equal shape and dtype. An operand of rank 0 is broadcast to the other's
// shape, a number is rounded to the value's dtype and broadcast. Anything else is broadcast by
// broadcast_pair first.
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

// lt and le with the operands exchanged: false for NaN.
Value greater(Value a, Value b);
Value greater_equal(Value a, Value b);

// A number in every element, of x's type. The second never passes an integer through a double.
Value constant_like(Value x, double number);
Value integer_like(Value x, std::int64_t number);
// A size as a scalar of the given dtype, known once shapes are.
Value size_value(Graph&, const Dim&, DType);
// 0, 1, 2, ... along one axis.
Value iota_value(Graph&, DType, const Shape&, int axis);

Value cast_to(Value, DType);
Value reshape_to(Value, Dims);
Value flatten(Value);  // rank 1
Value transpose_by(Value, std::span<const int> perm);
Value transpose_matrix(Value);  // swaps the last two axes
Value squeeze(Value, Axes);     // removes axes of size 1
// Inserts axes of size 1 so that they have these positions in the result.
Value unsqueeze(Value, Axes);
Value concat_values(std::span<const Value>, int axis);
Value reverse_axes(Value, Axes);

// Elements start, start + step, ... along one axis; step may be negative.
Value slice_axis(Value, int axis, const Dim& start, const Dim& size, std::int64_t step = 1);
// Consecutive parts of the given sizes along one axis.
Values split_axis(Value, int axis, std::span<const Dim> sizes);
// One index of an axis, which disappears.
Value take_axis(Value, int axis, const Dim& index);
Value pad_with(Value, Value number, Dims low, Dims high);
// The slice of an axis at an i64 scalar, kept as size 1; zeros where the axis has no element.
Value slice_at(Value, int axis, Value at);
// v with `slice`, of size 1 along the first axis, at an i64 scalar; v where that axis has no
// element.
Value updated_at(Value v, Value slice, Value at);

// Aligns trailing axes and repeats axes of size 1, as numpy does, explicitly.
Value broadcast_to(Value, const Shape&);
// The common shape of two. Sizes that may differ at run time are recorded as equal (`who` is named
// in the message when they are not).
Shape broadcast_shape(Graph&, const Shape&, const Shape&, std::string_view who);
std::pair<Value, Value> broadcast_pair(Value, Value, std::string_view who);
Values broadcast_all(std::span<const Value>, std::string_view who);
// select with broadcasting of all three.
Value where(Value condition, Value a, Value b);
// The gradient of a broadcast: sums over every axis along which `shape` was repeated.
Value sum_to(Value, const Shape& shape);

// A reduction op over the axes; with keep, they stay as size 1.
Value reduce_axes(const Op&, Value, Axes, bool keep = false);
// Puts axes of size 1 back where they were reduced away, and repeats them to `full`.
Value broadcast_back(Value reduced, const Axes&, const Shape& full);

// Pairs (axis of a, axis of b). Result axes: batch, free axes of a, free axes of b.
using AxisPairs = std::vector<std::pair<int, int>>;
Value dot_general(Value a, Value b, const AxisPairs& batch, const AxisPairs& contract,
                  std::optional<DType> dtype = std::nullopt);

// Windows over spatial axes, expanded to all axes of a channels-first or channels-last value.
struct Window {
  Dims size, strides, dilations, pads_low, pads_high;  // one entry for each spatial axis
  bool channels_last = false;
};
Value max_pool(Value, const Window&);
Value average_pool(Value, const Window&, bool include_pads);

// f32 for f16 and bf16, else the dtype itself: what sums of many elements are computed in.
DType sum_dtype(DType);

// "axis -1" of rank 3 is 2. Throws UserError naming `who`.
int normal_axis(std::int64_t axis, int rank, std::string_view who);
Axes all_axes(int rank);
Axes axes_of(const Attrs&, AttrName);
Dims dims_of_axes(std::span<const int>);

}  // namespace hone
