// Values with data-dependent sizes: a choice among values of different sizes, axes known only at
// run time, data-dependent repeats and pads. NodeContext measures the sizes.
#pragma once

#include <functional>

#include "import/onnx/node/context.h"

namespace hone::onnx {

// v at the front of a zero-filled tensor of the given sizes.
Value in_room(Value v, const Dims& room);
// The front of v. Where `open` is set, the size is read at run time from `sizes`, i64[rank]; the
// other sizes are those of v.
Value from_room(NodeContext&, Value v, Value sizes, const std::vector<bool>& open);
// The upper bound of a size that is a number, a size of inputs, or measured in this graph.
Dim room_of(const hone::Graph&, const Dim&);

// d as a size of at least `low`. A run in which it is smaller is rejected.
Dim at_least(NodeContext&, const Dim& d, std::int64_t low, std::string_view what);

// The option with the given index, an i64 scalar; a run with an invalid index is rejected. All
// options have one dtype and rank.
Value option_at(NodeContext&, Value number, const Values& options);

// b1[names, rank]: element [i, a] is true where the i-th name is axis a. A run that names an axis
// twice, or one that does not exist, is rejected.
Value named_axes(Value axes, int rank);
// i64[rank]: for each axis in `named` (see named_axes), the element of `list` at the same index;
// `otherwise` for the other axes.
Value by_axis(Value named, Value list, std::int64_t otherwise);

// The sizes of `count` parts of an axis, from an operand. A run in which data-dependent sizes do
// not add up to `size` is rejected.
Dims part_sizes(NodeContext&, std::size_t input, std::size_t count, const Dim& size);

// Calls `build` with the axes that an operand holds, out of `rank` axes. If they are
// data-dependent, `build` is tried on all sets of that many axes, and sets that it rejects are left
// out. If their number is open too, all sets are tried; if they give several ranks, the model has a
// variant for each number of axes.
Value over_axes(NodeContext&, std::size_t input, int rank,
                const std::function<Value(const Axes&)>& build);

// Elements of one axis at i64 positions; positions out of range are clamped.
Value at_clamped(Value x, int axis, Value places);

}  // namespace hone::onnx
