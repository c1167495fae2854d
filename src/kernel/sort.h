// Sorting along an axis, stable, with NaN as the largest: each row by one thread, or few long rows
// in pieces, which threads sort and then merge. Bits depend on the data alone. Writes statements;
// candidates.h decides which of the two is used.
#pragma once

#include <optional>

#include "kernel/lower_ordered.h"
#include "kernel/tuning.h"

namespace hone {

// Each row is cut into `count` pieces, a power of two, of which the last ones may be short or
// empty. No more than `kept` elements of a piece can be among those that the result has.
struct SortPieces {
  std::int64_t count = 1;
  Dim size = 0, kept = 0;
};

// Nothing when rows are short, or so many that they keep threads busy. Depends on sizes and the
// tuning alone.
std::optional<SortPieces> sort_pieces(Value sort, const Tuning&);
std::vector<Tuning> sort_tunings(Value sort);

// These add statements and scratch memory to a kernel whose parameters are filled in.

// Each row as a whole.
void lower_sort(Lowering&, Kernel&, Value sort, std::span<const OrderedResult> to);
// First step of a sort in pieces: each piece by itself.
void lower_sort_of_pieces(Lowering&, Kernel&, Value sort, const SortPieces&,
                          std::span<const OrderedResult> to);
// Then runs of `width` pieces are merged in pairs, for widths 1, 2, 4, ... below `count`.
void lower_merge_of_pieces(Lowering&, Kernel&, Value sort, const SortPieces&, std::int64_t width,
                           std::span<const OrderedResult> from, std::span<const OrderedResult> to);

// Of the temporaries between these steps: `kept` elements of each piece, one piece after another.
Shape shape_between_steps(Value sort, const SortPieces&);

}  // namespace hone
