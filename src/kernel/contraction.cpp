#include "kernel/contraction.h"

#include <algorithm>

#include "base/checked.h"
#include "kernel/blocking.h"

namespace hone {

namespace {

using ReadA = Contraction::ReadA;

// Parts of k longer than this do not pay: a panel of B falls out of the cache.
constexpr std::int64_t longest_part = 1024;
// Columns of a chunk; B is read once for each chunk.
constexpr std::int64_t widest_chunk = 512;

// The tile for m x n with the least cycles. Rows are spread evenly over the tiles.
TileShape best_tile(std::int64_t m, std::int64_t n, const TargetInfo& target, int lanes) {
  TileShape best;
  double best_cycles = 0;
  for (std::int64_t vectors : tile_widths) {
    std::int64_t most = TileShape::most_rows(vectors, target);
    if (most < 1) continue;
    TileShape tile{even_part(m, most), vectors};
    double cycles = tile.cycles() * static_cast<double>(ceil_ratio(m, tile.rows)) *
                    static_cast<double>(ceil_ratio(n, vectors * lanes));
    if (best_cycles > 0 && cycles > 0.97 * best_cycles) continue;
    best = tile;
    best_cycles = cycles;
  }
  return best;
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
  const std::int64_t m = tiling_size(c.m), n = tiling_size(c.n), k = tiling_size(c.k);
  const int lanes = target.lanes(bytes);
  const TileShape tile = best_tile(m, n, target, lanes);
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
  std::int64_t rows = even_part(row_tiles, target.l2_bytes / 8 / (part * c.rows));
  std::int64_t columns = even_part(panels, widest_chunk / c.block);
  auto too_large = [&] {
    std::int64_t chunks =
        ceil_ratio(row_tiles, rows) * ceil_ratio(panels, columns) * certain_size(c.batch);
    return chunks < enough_chunks &&
           static_cast<double>(rows * columns * k) * tile.cycles() > 2 * least_chunk_cycles;
  };
  while (rows * columns > 1 && too_large()) {
    if (rows * c.rows >= columns * c.block || columns == 1)
      rows = even_part(row_tiles, rows / 2);
    else
      columns = even_part(panels, columns / 2);
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
