// How groups of threads read rows of the queries, keys and values of an attention: as vectors of 16
// bytes of halves where the layout allows it. Writes no statements.
#pragma once

#include <optional>

#include "kernel/problem/attention_problem.h"

namespace hone {

struct AttentionRows {
  static constexpr std::int64_t vector_width = 8;  // halves in 16 bytes

  Splice element;  // over the matrix, the row, the vector and the position in it
  Dim extent = 0;  // number of rows
  std::int64_t columns = 0;
  bool are_vectors = false;  // vectors of 16 bytes in memory
  bool are_copied = false;   // copied unchanged
};

// Rows of q, k or v, as vectors of the given position over at.b and `row`, in their own dtype.
// Returns nullopt if that needs more than one expression.
std::optional<AttentionRows> attention_rows(AnchoredGroup&, Value, const AttentionPlaces& at,
                                            const Dims& matrix, const Dim& row);

}  // namespace hone
