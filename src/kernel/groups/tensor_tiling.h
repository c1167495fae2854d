// How groups of threads divide a product of narrow floats on machines whose subgroups multiply
// tiles: tile sizes, steps in flight, parts of the depth; and which of these is predicted to be
// fast. Writes no kernel.
#pragma once

#include <vector>

#include "kernel/problem/group_problem.h"
#include "kernel/tuning.h"

namespace hone {

struct TensorTiling {
  // The tile of a group is m x n, in steps of k; that of a subgroup is rows x columns.
  std::int64_t m = 64, n = 64, k = 32, rows = 32, columns = 32;
  // Steps whose tiles are in memory at once: later ones arrive while one is multiplied. With 1 and
  // 2 they pass through registers.
  std::int64_t stages = 1;
  // Parts of the depth: each is computed by one group, and a second kernel adds them up.
  std::int64_t parts = 1;
  // Parts of a step's depth: each is multiplied by its own subgroups, and the group adds them up.
  std::int64_t depths = 1;
  // Steps whose tiles are in flight through registers while one is multiplied: 1, 2 or 4. If more
  // than 1, it divides the number of steps, which must be known.
  std::int64_t ahead = 1;
  // Rows of a subgroup's tile that the group stages in memory at once for storing; 0: all.
  std::int64_t strip = 0;

  static constexpr std::int64_t subgroup = 32;
  static constexpr std::int64_t vector_width = 8;  // elements of 16 bytes
  // Offsets rows of a tile so that they begin at different banks.
  static constexpr std::int64_t row_gap = 8;

  std::int64_t threads() const { return m / rows * (n / columns) * subgroup * depths; }
  std::int64_t put_rows() const { return strip > 0 ? strip : rows; }
  std::int64_t bytes() const;  // of group memory
  bool fits(const TargetInfo&) const;
  bool divides_steps(const GroupProblem&) const;  // whether `ahead` divides the steps of a part
  Tuning named() const;
  static TensorTiling of(const Tuning&, const TensorTiling& otherwise);

  bool operator==(const TensorTiling&) const = default;
};

// in_vectors: both operands can be copied unchanged, so `stages` may be more than 1.
enum class TensorOperandsLie : std::uint8_t { in_vectors, otherwise };

// All that fit, by predicted time, best first, at most `most`. The depth is divided only if its
// size is known.
std::vector<TensorTiling> tensor_tilings(const GroupProblem&, const TargetInfo&, TensorOperandsLie,
                                         std::size_t most);

// Predicted microseconds on an H100 by a coarse model: only for comparing tilings.
double predicted_us(const GroupProblem&, const TensorTiling&);

}  // namespace hone
