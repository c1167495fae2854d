// How groups of threads read rows of the queries, keys and values of an attention: in vectors of 16
// bytes of halves, where they lie so. Writes no statements.
#pragma once

#include <optional>

#include "kernel/attention_problem.h"

namespace hone {

struct AttentionRows {
  static constexpr std::int64_t vector_width = 8;  // elements of 16 bytes, where they are halves

  Splice element;  // over the matrix, the row, vector and place in it
  Dim extent = 0;  // rows that there are
  std::int64_t columns = 0;
  bool are_vectors = false;  // of 16 bytes, in memory
  bool are_copied = false;   // as they lie
};

// Rows of q, k or v, as vectors of the given position over at.b and `row`, in their own dtype.
// Nothing when more than an expression is needed.
std::optional<AttentionRows> attention_rows(AnchoredGroup&, Value, const AttentionPlaces& at,
                                            const Dims& matrix, const Dim& row);

}  // namespace hone
