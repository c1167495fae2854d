// Strided windows over dense buffers: which movement ops only change offset and strides.
// Independent of groups.
#pragma once

#include <optional>
#include <span>

#include "ir/function.h"
#include "plan/plan.h"

namespace hone {

// The location of a value's elements: element (i0, i1, ...) at offset + sum i_k * strides_k.
struct Layout {
  Dim offset = 0;  // elements
  Dims strides;
  bool operator==(const Layout&) const = default;
};

Layout dense_layout(const Shape&);
// Of a value that has memory of its own: dense, but for a parameter with capacity.
Layout memory_layout(const Function&, Value);
// Axes of size 0 and 1 do not count: their stride is never used.
bool are_dense(const Dims& strides, const Dims& sizes);

// Strides of `to` over the same memory as `from`, if no element has to move.
std::optional<Dims> reshape_strides(const Dims& from, const Dims& strides, const Dims& to);

// The layout of a reshape, transpose or slice of a value with the given layout; nullopt if the node
// is another op or elements would have to move.
std::optional<Layout> view_layout(const Graph&, NodeId, const Layout& operand);

// The layout that the operand of a reshape, transpose or full slice must have for the node to have
// the given one; nullopt if there is none.
std::optional<Layout> operand_layout(const Graph&, NodeId, const Layout& result);

// The view's strides, with dense strides on axes of size 1, so that equal work has equal text.
Dims normal_strides(const View&);
// True if both have equal sizes and their elements are at the same addresses.
bool is_same_place(const View&, const View&);
// The same in place: `strides` are those of a view with these sizes.
void normalize_strides(const Dims& sizes, std::span<Dim> strides);

}  // namespace hone
