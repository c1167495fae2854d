// Values whose sizes data decides: one of several values of different sizes, axes that a run names,
// and repeats and pads by data. Built of operations that exist; NodeContext measures the sizes.
#pragma once

#include <functional>

#include "import/onnx/context.h"

namespace hone::onnx {

// v in the front of zeros of the given sizes.
Value in_room(Value v, const Dims& room);
// The front of v, whose sizes a run finds in `sizes`, i64[rank], where `open` says so; the others
// are those of v.
Value from_room(NodeContext&, Value v, Value sizes, const std::vector<bool>& open);
// How large a size can be that is a number, a size of inputs, or measured in this graph.
Dim room_of(const hone::Graph&, const Dim&);

// d as a size of at least `low`. A run in which it is less is refused.
Dim at_least(NodeContext&, const Dim& d, std::int64_t low, std::string_view what);

// The option of that number, which is an i64 scalar; a run in which there is none is refused. All
// have one dtype and rank.
Value option_at(NodeContext&, Value number, const Values& options);

// b1[names, rank]: element [i, a] is true where the i-th name is axis a. A run that names an
// axis twice, or one that does not exist, is refused.
Value named_axes(Value axes, int rank);
// i64[rank]: for each axis that `named` (see named_axes) holds, the element of `list` at the same
// index; `otherwise` for the other axes.
Value by_axis(Value named, Value list, std::int64_t otherwise);

// The sizes of `count` parts of an axis that an operand holds. A run in which data gives others
// than add up to `size` is refused.
Dims part_sizes(NodeContext&, std::size_t input, std::size_t count, const Dim& size);

// What `build` makes of the axes that an operand holds, which are numbers of `rank` axes. Where
// data decides them, `build` is tried on all sets of as many axes, and those that it refuses are
// left out. Where how many there are is open, too, all sets are tried; if they give several ranks,
// the model has a variant for each number of axes.
Value over_axes(NodeContext&, std::size_t input, int rank,
                const std::function<Value(const Axes&)>& build);

// Elements of one axis at i64 places, of which those outside are taken from the nearest end.
Value at_clamped(Value x, int axis, Value places);

}  // namespace hone::onnx
