#include "kernel/contraction.h"

#include <algorithm>

#include "base/checked.h"

namespace hone {

namespace {

using ReadA = Contraction::ReadA;

// Multiply-adds in flight that hide the latency of one, on the CPUs there are.
constexpr std::int64_t latency = 8;
// A symbolic size is tiled as if it were this large.
constexpr std::int64_t large = 4096;
// Parts of k longer than this do not pay: a panel of B falls out of the cache.
constexpr std::int64_t longest_part = 1024;
// A chunk should not take less than this many cycles, nor should there be fewer chunks than these
// while it takes more.
constexpr std::int64_t least_chunk_cycles = 40'000, enough_chunks = 16;
// Columns of a chunk; B is read once for each chunk.
constexpr std::int64_t widest_chunk = 512;

std::int64_t ceil_ratio(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Tile {
  std::int64_t rows = 1, vectors = 1;

  // Of one k: multiply-adds or their latency, and a share of the loads that hides behind neither.
  double cycles() const {
    return static_cast<double>(std::max(rows * vectors, latency)) +
           0.1 * static_cast<double>(rows + vectors);
  }
};

std::int64_t extent(const Dim& d) {
  return std::max<std::int64_t>(1, d.is_number() ? d.number() : std::min(d.high(), large));
}

// The tile for m x n with the least cycles. Rows are spread evenly over the tiles. Of nearly equal
// ones, the first of the list.
Tile best_tile(std::int64_t m, std::int64_t n, const TargetInfo& target, int lanes) {
  Tile best;
  double best_cycles = 0;
  for (std::int64_t vectors : {4, 3, 2, 5, 1, 6, 7, 8}) {
    // One register for the broadcast element of A, and a row of B.
    std::int64_t most = (target.vector_registers - 1 - vectors) / vectors;
    if (most < 1) continue;
    Tile tile{ceil_ratio(m, ceil_ratio(m, most)), vectors};
    double cycles = tile.cycles() * static_cast<double>(ceil_ratio(m, tile.rows)) *
                    static_cast<double>(ceil_ratio(n, vectors * lanes));
    if (best_cycles > 0 && cycles > 0.97 * best_cycles) continue;
    best = tile;
    best_cycles = cycles;
  }
  return best;
}

// An odd number of cache lines, so that rows of a tile do not meet in one set of the cache.
std::int64_t spread_stride(std::int64_t elements, std::int64_t bytes) {
  const std::int64_t line = 64 / bytes;
  std::int64_t lines = ceil_ratio(elements, line);
  return (lines + (lines + 1) % 2) * line;
}

// Cuts `count` tiles in equal chunks of at most `most`.
std::int64_t even_chunk(std::int64_t count, std::int64_t most) {
  most = std::max<std::int64_t>(1, most);
  return ceil_ratio(count, ceil_ratio(count, most));
}

ReadA choose_reading(const Contraction& c, const OperandAccess& a) {
  const bool is_known = a.is_plain && a.row_stride && a.k_stride;
  const bool fits_rows = c.m.is_number() ? c.m.number() >= c.rows : true;
  if (is_known && fits_rows && (*a.k_stride == 1 || *a.row_stride == 1)) return ReadA::in_place;
  return a.row_stride == 1 && a.k_stride != 1 ? ReadA::copy_along_m : ReadA::copy_along_k;
}

}  // namespace

void choose_blocking(Contraction& c, const OperandAccess& a, const TargetInfo& target) {
  const std::int64_t bytes = byte_size(c.accumulate);
  const std::int64_t m = extent(c.m), n = extent(c.n), k = extent(c.k);
  const int lanes = target.lanes(bytes);
  const Tile tile = best_tile(m, n, target, lanes);
  c.rows = static_cast<int>(tile.rows);
  c.block = static_cast<int>(tile.vectors) * lanes;
  c.k_block = round_up(ceil_ratio(k, ceil_ratio(k, longest_part)), lanes);
  c.read_a = choose_reading(c, a);
  if (c.read_a == ReadA::in_place) {
    c.a_row_stride = *a.row_stride;
    c.a_k_stride = *a.k_stride;
  }
  const std::int64_t row_tiles = ceil_ratio(m, c.rows), panels = ceil_ratio(n, c.block);
  const std::int64_t part = c.k_block * bytes;
  std::int64_t rows = even_chunk(row_tiles, target.l2_bytes / 8 / (part * c.rows));
  std::int64_t columns = even_chunk(panels, widest_chunk / c.block);
  auto too_large = [&] {
    std::int64_t chunks =
        ceil_ratio(row_tiles, rows) * ceil_ratio(panels, columns) * extent(c.batch);
    return chunks < enough_chunks &&
           static_cast<double>(rows * columns * k) * tile.cycles() > 2 * least_chunk_cycles;
  };
  while (rows * columns > 1 && too_large()) {
    if (rows * c.rows >= columns * c.block || columns == 1)
      rows = even_chunk(row_tiles, rows / 2);
    else
      columns = even_chunk(panels, columns / 2);
  }
  c.chunk_rows = rows * c.rows;
  c.chunk_columns = columns * c.block;
}

bool is_single_part(const Contraction& c) { return c.k.is_number() && c.k.number() <= c.k_block; }

ContractionScratch scratch_of(const Contraction& c) {
  const std::int64_t bytes = byte_size(c.accumulate);
  ContractionScratch s;
  s.sums = is_single_part(c) ? std::int64_t{c.rows} * c.block : c.chunk_rows * c.chunk_columns;
  s.sums = round_up(s.sums, 64 / bytes);
  if (c.read_a == ReadA::copy_along_k) {
    s.copy_stride = spread_stride(c.k_block, bytes);
    s.copy = c.chunk_rows * s.copy_stride;
  } else if (c.read_a == ReadA::copy_along_m) {
    s.copy_stride = spread_stride(c.chunk_rows, bytes);
    s.copy = c.k_block * s.copy_stride;
  }
  return s;
}

std::int64_t scratch_bytes(const Contraction& c) {
  ContractionScratch s = scratch_of(c);
  return (s.sums + s.copy) * byte_size(c.accumulate);
}

Dim chunks_of(const Contraction& c) {
  return c.batch * ceil_div(c.m, c.chunk_rows) * ceil_div(c.n, c.chunk_columns);
}

Type packed_type(const Contraction& c) {
  Dims dims = {ceil_div(c.n, c.block), c.k, c.block};
  if (c.packed_batch) dims.insert(dims.begin(), c.batch);
  return {c.accumulate, Shape(dims)};
}

}  // namespace hone
