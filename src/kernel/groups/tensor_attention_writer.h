// The kernel of an attention of f16 or bf16 by tiles, given its tiling, how its operands are read
// and how its results are stored. Chooses nothing.
#pragma once

#include "base/checked.h"
#include "kernel/groups/attention_rows.h"
#include "kernel/nest/blocking.h"
#include "kernel/tuning.h"

namespace hone {

struct AttentionTiling {
  static constexpr std::int64_t subgroup = 32;
  static constexpr std::int64_t stages = 2;  // blocks of keys and values that are copied

  std::int64_t rows = 32;  // queries of a subgroup
  std::int64_t subgroups = 4;
  std::int64_t keys = 64;  // of a block

  // Floats of a row of opaque tiles in group memory.
  std::int64_t shown_pitch() const { return keys + 4; }

  std::int64_t queries() const { return rows * subgroups; }
  std::int64_t threads() const { return subgroup * subgroups; }
  Tuning named() const { return {{"rows", rows}, {"subgroups", subgroups}, {"keys", keys}}; }
  bool operator==(const AttentionTiling&) const = default;
};

// Rows as stored in group memory: padded to whole pieces, with a gap.
struct TensorRows : AttentionRows {
  explicit TensorRows(AttentionRows rows)
      : AttentionRows(std::move(rows)), padded(round_up(columns, 16)) {}

  // The gap lets lines in memory begin at different banks.
  static constexpr std::int64_t gap = 8;
  std::int64_t padded = 0, lines = 0;
  int memory = 0, held = 0;

  std::int64_t pitch() const { return padded + gap; }
};

// Parts of the values of a matrix, each with a number that tells whether they are finite: 0 if so,
// else NaN.
struct FiniteParts {
  static constexpr std::int64_t keys = 256;  // of a part

  int param = -1;
  Dim parts = 0;
  Dim matrix = 0;  // of the values, over b
};

struct TensorAttention {
  AttentionProblem problem;
  Dim b = 0;  // variable: the matrix
  TensorRows query, key, value;
  Splice epilogue;  // (b, m, e)
  KeyRange range = {};
  std::optional<Splice> mask = {};  // (b, m, s); only what the range does not cover
  std::optional<FiniteParts> finite = {};
};

// Fills in what AnchoredGroup::kernel() leaves open.
void write_tensor_attention(Kernel&, Lowering&, const TensorAttention&, const AttentionTiling&,
                            bool has_opaque_tiles);

}  // namespace hone
