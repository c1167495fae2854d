#include "kernel/tiles/contraction.h"

#include <algorithm>

#include "base/checked.h"
#include "kernel/nest/blocking.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

using ReadA = ContractionTuning::ReadA;

// Longer parts of k do not pay: a panel of B falls out of the cache.
constexpr std::int64_t longest_part = 1024;
// Columns of a chunk; B is read once per chunk.
constexpr std::int64_t widest_chunk = 512;

// The tile for m x n with the fewest cycles. Rows are distributed evenly over the tiles.
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

// How elements of A lie in memory, as far as known.
struct AccessOfA {
  bool is_plain = false;                             // a load, no arithmetic
  std::optional<std::int64_t> row_stride, k_stride;  // elements
};

AccessOfA access_of(const Contraction& c) {
  const Dim &row = c.a.vars[1], &k = c.a.vars[2];
  if (auto load = plain_load(c.a, c.accumulate))
    return {true, stride_along(*load, row), stride_along(*load, k)};
  // Lanes of the copy follow the first load that depends on both.
  for (NodeId n : nodes_below(std::span(&c.a.value, 1))) {
    Value v(&c.a.value.graph(), n);
    if (!v.is(ops::load)) continue;
    auto rows = stride_along(v, row), steps = stride_along(v, k);
    if (rows == 0 || steps == 0) continue;
    return {false, rows, steps};
  }
  return {};
}

bool can_read_in_place(const Contraction& c, const AccessOfA& a, std::int64_t rows) {
  const bool fits_rows = c.m.is_number() ? c.m.number() >= rows : true;
  return a.is_plain && a.row_stride && a.k_stride && fits_rows;
}

ReadA best_reading(const Contraction& c, std::int64_t rows) {
  const AccessOfA a = access_of(c);
  if (can_read_in_place(c, a, rows) && (a.k_stride == 1 || a.row_stride == 1))
    return ReadA::in_place;
  return a.row_stride == 1 && a.k_stride != 1 ? ReadA::copy_along_m : ReadA::copy_along_k;
}

// Rows and columns of a chunk, in whole tiles.
void choose_chunks(const Contraction& c, const TargetInfo& target, ContractionTuning& t) {
  const std::int64_t bytes = byte_size(c.accumulate);
  const std::int64_t m = tiling_size(c.m), n = tiling_size(c.n), k = tiling_size(c.k);
  const TileShape tile{t.rows, t.columns / target.lanes(bytes)};
  const std::int64_t row_tiles = ceil_ratio(m, t.rows), panels = ceil_ratio(n, t.columns);
  const std::int64_t part = t.k_part * bytes;
  std::int64_t rows = even_part(row_tiles, target.l2_bytes / 8 / (part * t.rows));
  std::int64_t columns = even_part(panels, widest_chunk / t.columns);
  auto too_large = [&] {
    std::int64_t chunks =
        ceil_ratio(row_tiles, rows) * ceil_ratio(panels, columns) * certain_size(c.batch);
    return chunks < enough_chunks &&
           static_cast<double>(rows * columns * k) * tile.cycles() > 2 * least_chunk_cycles;
  };
  while (rows * columns > 1 && too_large()) {
    if (rows * t.rows >= columns * t.columns || columns == 1)
      rows = even_part(row_tiles, rows / 2);
    else
      columns = even_part(panels, columns / 2);
  }
  t.chunk_rows = rows * t.rows;
  t.chunk_columns = columns * t.columns;
}

// B is read in place if few rows use it or it is small: packing would cost more.
bool pays_to_read_in_place(const Contraction& c) {
  constexpr std::int64_t few_rows = 32, small_bytes = 64 << 10;
  const std::int64_t bytes = tiling_size(c.k) * tiling_size(c.n) * byte_size(c.packed_dtype);
  return bytes <= small_bytes || (c.m.is_number() && c.m.number() <= few_rows);
}

}  // namespace

Tuning ContractionTuning::named() const {
  return {{"rows", rows},
          {"columns", columns},
          {"chunk_rows", chunk_rows},
          {"chunk_columns", chunk_columns},
          {"k_part", k_part},
          {"read_a", static_cast<std::int64_t>(read_a)},
          {"pack_b", pack_b},
          {"widen_b", widen_b}};
}

ContractionTuning default_tuning(const Contraction& c, const TargetInfo& target) {
  return tuned(c, target, {});
}

ContractionTuning tuned(const Contraction& c, const TargetInfo& target, const Tuning& given) {
  const int lanes = target.lanes(byte_size(c.accumulate));
  const std::int64_t m = tiling_size(c.m), k = tiling_size(c.k);
  const TileShape tile = best_tile(m, tiling_size(c.n), target, lanes);
  auto positive = [&](std::string_view name, std::int64_t otherwise) {
    return std::max<std::int64_t>(1, value_or(given, name, otherwise));
  };
  ContractionTuning t;
  t.rows = positive("rows", tile.rows);
  t.columns = whole_tiles(positive("columns", tile.vectors * lanes), lanes);
  // The decoded part of a panel must stay in the L1 cache.
  const std::int64_t made = target.l1_bytes / 2 / (t.columns * byte_size(c.accumulate));
  const std::int64_t longest =
      c.makes_b() ? std::clamp<std::int64_t>(made, lanes, longest_part) : longest_part;
  t.k_part = whole_tiles(positive("k_part", ceil_ratio(k, ceil_ratio(k, longest))), lanes);
  t.read_a = best_reading(c, t.rows);
  const auto wanted = static_cast<ReadA>(value_or(given, "read_a", static_cast<int>(t.read_a)));
  if (wanted != ReadA::in_place || can_read_in_place(c, access_of(c), t.rows)) t.read_a = wanted;
  t.pack_b = value_or(given, "pack_b", !pays_to_read_in_place(c)) != 0;
  t.widen_b = c.packed_dtype != c.accumulate && value_or(given, "widen_b", 0) != 0;
  choose_chunks(c, target, t);
  // A chunk that extends beyond the last tile is the same as one that ends there.
  auto chunk_of = [](const Dim& all, std::int64_t wanted, std::int64_t tile) {
    return whole_tiles(all.is_number() ? std::min(wanted, all.number()) : wanted, tile);
  };
  t.chunk_rows = chunk_of(c.m, positive("chunk_rows", t.chunk_rows), t.rows);
  t.chunk_columns = chunk_of(c.n, positive("chunk_columns", t.chunk_columns), t.columns);
  return t;
}

Type packed_type(const Contraction& c, const ContractionTuning& t) {
  Dims dims = {ceil_div(c.n, t.columns), c.k, t.columns};
  if (c.packed_batch) dims.insert(dims.begin(), c.batch);
  return {t.widen_b ? c.accumulate : c.packed_dtype, Shape(dims)};
}

std::vector<Tuning> space_of(const Contraction& c, const TargetInfo& target, bool may_choose_b) {
  const ContractionTuning best = default_tuning(c, target);
  const int lanes = target.lanes(byte_size(c.accumulate));
  std::vector<Tuning> out = {best.named()};
  auto offer = [&](const Tuning& change) {
    const Tuning t = tuned(c, target, change).named();
    if (std::find(out.begin(), out.end(), t) == out.end()) out.push_back(t);
  };
  // Tiles of other widths, then the same tile with other chunks.
  const std::int64_t m = tiling_size(c.m), n = tiling_size(c.n);
  auto cycles = [&](const TileShape& t) {
    return t.cycles() *
           static_cast<double>(ceil_ratio(m, t.rows) * ceil_ratio(n, t.vectors * lanes));
  };
  const double least = cycles({best.rows, best.columns / lanes});
  for (std::int64_t vectors : tile_widths) {
    const std::int64_t most = TileShape::most_rows(vectors, target);
    if (most < 1) continue;
    const TileShape tile{even_part(m, most), vectors};
    if (cycles(tile) < 1.25 * least)
      offer({{"rows", tile.rows}, {"columns", tile.vectors * lanes}});
  }
  for (std::int64_t part : {best.k_part / 2, best.k_part / 4})
    if (part >= 128) offer({{"k_part", part}});
  offer({{"chunk_rows", best.chunk_rows / 2}});
  offer({{"chunk_rows", best.chunk_rows * 2}});
  offer({{"chunk_columns", best.chunk_columns / 2}});
  offer({{"chunk_columns", best.chunk_columns * 2}});
  if (best.read_a == ReadA::in_place)
    offer({{"read_a", static_cast<std::int64_t>(ReadA::copy_along_k)}});
  if (may_choose_b) offer({{"pack_b", !best.pack_b}});
  if (!may_choose_b || best.pack_b) offer({{"widen_b", 1}});
  return out;
}

}  // namespace hone
