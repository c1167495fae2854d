// An attention as found in a group: its sizes and the positions of its operands' elements. Shared
// by the builders of such kernels; not one of them.
#pragma once

#include <optional>

#include "kernel/problem/anchored.h"

namespace hone {

// The leading axes of keys and values are those of the queries, except that one of their heads may
// serve several query heads.
struct AttentionProblem {
  Value q, k, v, mask;  // mask is invalid if there is none
  Dims leading, shared;
  Dim queries = 1, keys = 1;
  std::int64_t depth = 1, width = 1;
  double scale = 1, masked = 0;
  std::optional<double> softcap;
  std::optional<Dim> last_key;  // the last key that the first query may see

  // True if a score is changed beyond its scaling.
  bool changes_scores() const { return softcap || mask; }
};

struct FoundAttention {
  AnchoredGroup group;
  AttentionProblem problem;
};

// Returns nullopt unless the group is one attention with its producers and consumers, accumulates
// in f32, and has rows of known, moderate length.
std::optional<FoundAttention> find_attention(const GroupSpec&);

// True if there are enough queries to fill tiles.
bool has_many_queries(const AttentionProblem&);

// Positions over variables: of the matrix, the query, the key, and the element within a row.
struct AttentionPlaces {
  Dim b, m, s, d, e;  // variables
  Dims lead, shared;  // of the matrix of a query; of keys and values
  Dim matrix;         // the row-major number of `shared`

  AttentionPlaces(const AttentionProblem&, Positions&);
  // Element `column` of row `row` of a matrix.
  Dims operator()(Dims matrix, const Dim& row, const Dim& column) const;

 private:
  // The only position of an axis of size 1 is 0.
  Dim at(const Dim& var) const { return positions_->extent(var) == Dim(1) ? Dim(0) : var; }
  const Positions* positions_;
};

// The element of the mask over (b, m, s). Empty if the mask is not a single expression.
std::optional<Splice> mask_element(AnchoredGroup&, const AttentionProblem&, const AttentionPlaces&);

// The keys that a query may see lie in [query + first, query + last]. Other scores are -infinity.
struct KeyRange {
  std::optional<Dim> first, last;
  bool is_all = false;  // every query sees all of these, and the mask has no other effect
};

// Derived from the attribute and the mask.
KeyRange key_range(const AttentionProblem&, const std::optional<Splice>& mask);

// The scaled score as the softmax takes it, given the element of the mask, if any.
Value changed_score(const Lowering&, const AttentionProblem&, Value score, Value mask);

}  // namespace hone
