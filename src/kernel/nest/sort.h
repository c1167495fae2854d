// Sorting along an axis, stable, NaN largest: each row by one thread, or few long rows in pieces,
// which threads sort and then merge. The result's bits depend only on the data. Writes statements;
// nest_candidate.h decides which of the two is used.
#pragma once

#include <optional>

#include "kernel/nest/lower_ordered.h"
#include "kernel/tuning.h"

namespace hone {

// Each row is cut into `count` pieces, a power of two; the last ones may be short or empty. At most
// `kept` elements of a piece can be in the result.
struct SortPieces {
  std::int64_t count = 1;
  Dim size = 0, kept = 0;
};

// Returns nullopt if rows are short, or enough of them to keep threads busy. Depends on sizes and
// the tuning only.
std::optional<SortPieces> sort_pieces(Value sort, const Tuning&);
std::vector<Tuning> sort_tunings(Value sort);

// These add statements and scratch memory to a kernel whose parameters are filled in.

// Each row as a whole.
void lower_sort(Lowering&, Kernel&, Value sort, std::span<const OrderedResult> to);
// First step of a sort in pieces: sorts each piece by itself.
void lower_sort_of_pieces(Lowering&, Kernel&, Value sort, const SortPieces&,
                          std::span<const OrderedResult> to);
// Next steps: merge pairs of runs of `width` pieces, for widths 1, 2, 4, ... below `count`.
void lower_merge_of_pieces(Lowering&, Kernel&, Value sort, const SortPieces&, std::int64_t width,
                           std::span<const OrderedResult> from, std::span<const OrderedResult> to);

// The shape of the temporaries between these steps: `kept` elements of each piece, one piece after
// another.
Shape shape_between_steps(Value sort, const SortPieces&);

}  // namespace hone
