// The register tile of contractions and convolutions, and arithmetic for cutting loops.
#pragma once

#include <algorithm>
#include <cstdint>

#include "target/target_info.h"
#include "type/dim.h"

namespace hone {

constexpr std::int64_t ceil_ratio(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct TileShape {
  std::int64_t rows = 1, vectors = 1;

  // For one k: multiply-adds or their latency, plus a share of the loads that neither hides.
  double cycles() const {
    // Multiply-adds in flight that hide the latency of one on common processors.
    constexpr std::int64_t latency = 8;
    return static_cast<double>(std::max(rows * vectors, latency)) +
           0.1 * static_cast<double>(rows + vectors);
  }
  // Maximum rows with `vectors` vectors: one register holds the broadcast element of A, `vectors` a
  // row of B. More than 20 bring no gain.
  static std::int64_t most_rows(std::int64_t vectors, const TargetInfo& target) {
    return std::min<std::int64_t>(20, (target.vector_registers - 1 - vectors) / vectors);
  }
};

// Widths of tiles in vectors; of nearly equal ones the first is taken.
inline constexpr std::int64_t tile_widths[] = {4, 3, 2, 5, 1, 6, 7, 8};

// A size for decisions: a symbolic one counts as its upper bound, but at most 4096.
inline std::int64_t tiling_size(const Dim& d) {
  return std::max<std::int64_t>(
      1, d.is_number() ? d.number() : std::min<std::int64_t>(d.high(), 4096));
}

// The guaranteed minimum: there must be enough chunks for the smallest batch, too.
inline std::int64_t certain_size(const Dim& d) { return std::max<std::int64_t>(1, d.low()); }

// The best length when `count` is cut into equal parts of at most `most`.
inline std::int64_t even_part(std::int64_t count, std::int64_t most) {
  return ceil_ratio(count, ceil_ratio(count, std::max<std::int64_t>(1, most)));
}

// n rounded up to whole tiles, at least one.
inline std::int64_t whole_tiles(std::int64_t n, std::int64_t tile) {
  return ceil_ratio(std::max<std::int64_t>(n, 1), tile) * tile;
}

// At least `elements`, and an odd number of cache lines, so that rows of a tile do not fall into
// the same cache set.
inline std::int64_t spread_stride(std::int64_t elements, std::int64_t element_bytes) {
  const std::int64_t line = 64 / element_bytes;
  std::int64_t lines = ceil_ratio(elements, line);
  return (lines + (lines + 1) % 2) * line;
}

// A chunk shorter than this does not pay for its dispatch; more than `enough_chunks` are not needed
// to keep threads busy.
inline constexpr double least_chunk_cycles = 40'000;
inline constexpr std::int64_t enough_chunks = 16;

}  // namespace hone
