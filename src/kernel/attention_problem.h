// An attention as it stands in a group: its sizes, and where elements of its operands lie. Shared
// by the builders of such kernels; not one of them.
#pragma once

#include <optional>

#include "kernel/anchored.h"

namespace hone {

// The leading axes of keys and values are those of the queries, but that each of their heads may
// serve several.
struct AttentionProblem {
  Value q, k, v, mask;  // no mask: not valid
  Dims leading, shared;
  Dim queries = 1, keys = 1;
  std::int64_t depth = 1, width = 1;
  double scale = 1, masked = 0;
  std::optional<double> softcap;
  std::optional<Dim> last_key;  // that the first query may see

  // More is made of a score than its product with the scale.
  bool changes_scores() const { return softcap || mask; }
};

struct FoundAttention {
  AnchoredGroup group;
  AttentionProblem problem;
};

// Nothing when the group is not one attention with its producers and consumers, sums in something
// else than f32, or has rows of unknown or great length.
std::optional<FoundAttention> find_attention(const GroupSpec&);

// Whether a block of queries is filled well enough for tiles of them.
bool has_many_queries(const AttentionProblem&);

// Positions over variables: of the matrix, the query, the key, and the element of a row.
struct AttentionPlaces {
  Dim b, m, s, d, e;  // variables
  Dims lead, shared;  // of the matrix of a query, of keys and values
  Dim matrix;         // the number of the latter

  AttentionPlaces(const AttentionProblem&, Positions&);
  // Element `column` of row `row` of a matrix.
  Dims operator()(Dims matrix, const Dim& row, const Dim& column) const;

 private:
  // The only position of an axis of size 1 is 0.
  Dim at(const Dim& var) const { return positions_->extent(var) == Dim(1) ? Dim(0) : var; }
  const Positions* positions_;
};

// The element of the mask over (b, m, s). Empty if the mask is not an expression.
std::optional<Splice> mask_element(AnchoredGroup&, const AttentionProblem&, const AttentionPlaces&);

// Keys that a query may see at most: none before query + first, none behind query + last. Scores of
// others are -infinity.
struct KeyRange {
  std::optional<Dim> first, last;
  bool is_all = false;  // a query sees all of these, and the mask says nothing else
};

// What attribute and mask say of it.
KeyRange key_range(const AttentionProblem&, const std::optional<Splice>& mask);

// What becomes of a scaled score before the softmax, given the element of the mask, if any.
Value changed_score(const Lowering&, const AttentionProblem&, Value score, Value mask);

}  // namespace hone
