// Helpers for writers of attention for groups of threads: the grid of blocks of queries, and which
// keys a group visits. Computes nothing.
#pragma once

#include <array>
#include <span>

#include "kernel/groups/words.h"
#include "kernel/problem/attention_problem.h"

namespace hone {

class AttentionWords : protected GroupWords {
 protected:
  // A group takes `queries` queries and visits `keys` keys at once.
  AttentionWords(Kernel& kernel, Lowering& lowering, const AttentionProblem& p,
                 const KeyRange& range, std::int64_t queries, std::int64_t keys)
      : GroupWords(kernel, lowering), p_(p), range_(range), queries_(queries), keys_(keys) {}

  // ---- the grid

  void write_grid(std::int64_t threads, const std::function<void()>& thread) {
    const Dim matrices = product(p_.leading), blocks = ceil_div(p_.queries, queries_);
    write_groups({matrices, blocks}, threads, [&](const Dims& at) {
      batch_ = at[0];
      place_group(at[1], blocks);
      thread();
    });
  }

  bool hides_keys() const { return range_.first || range_.last; }
  // One past the last key that a query may see.
  Dim visible_to(const Dim& query) const {
    return range_.last ? min(p_.keys, query + *range_.last + Dim(1)) : p_.keys;
  }
  // True if some of the keys from first_key_ on do not exist or are hidden from some query of the
  // group. Null if that is never the case.
  Value hides_some() const {
    Value any;
    if (!divides(keys_, p_.keys) || range_.last)
      any = lowering_.below(visible_to(first_query_), first_key_ + Dim(keys_));
    if (!range_.first) return any;
    const Value before =
        lowering_.below(first_key_, first_query_ + Dim(queries_ - 1) + *range_.first);
    return any ? apply(ops::bit_or, any, before) : before;
  }
  // The number of blocks of keys that the group visits.
  Dim count_of_blocks() {
    const Dim count = ceil_div(visible_, keys_);
    return range_.first ? out_.keep(max(Dim(0), count - first_block_)) : count;
  }

  Value tile_element(std::int64_t tile, const Dim& row, const Dim& column) const {
    const Type type(DType::f32, Shape());
    return lowering_.graph().intern_typed(
        ops::tile_element, {},
        {{"index", tile}, {"dtype", DType::f32}, {"offset", Dims{row, column}}},
        std::span(&type, 1));
  }

  const AttentionProblem& p_;
  const KeyRange& range_;
  // The group's matrix, its first query, the first block of keys that it visits, and one past the
  // last key that it may see.
  Dim batch_ = 0, first_query_ = 0, first_block_ = 0, visible_ = 0;
  Dim first_key_ = 0;  // of the block being visited

 private:
  void place_group(const Dim& block, const Dim& blocks) {
    // With causal attention, the blocks with the most work start first.
    first_query_ = out_.keep((range_.last ? blocks - Dim(1) - block : block) * Dim(queries_));
    first_block_ = 0, visible_ = p_.keys;
    const Dim end = min(first_query_ + Dim(queries_), p_.queries);
    if (range_.last) visible_ = out_.keep(min(p_.keys, max(Dim(0), end + *range_.last)));
    if (range_.first)
      first_block_ =
          out_.keep(floor_div(min(p_.keys, max(Dim(0), first_query_ + *range_.first)), keys_));
  }

  std::int64_t queries_, keys_;
};

}  // namespace hone
