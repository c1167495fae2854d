#include <array>

#include "base/checked.h"
#include "kernel/nest/block_writer.h"
#include "kernel/nest/blocking.h"
#include "kernel/nest/loops.h"
#include "kernel/tiles/contraction.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;
using ReadA = ContractionTuning::ReadA;

class ContractionWriter {
 public:
  ContractionWriter(Kernel& kernel, Lowering& lowering, const Contraction& c,
                    const ContractionTuning& t, const TargetInfo& target)
      : kernel_(kernel),
        lowering_(lowering),
        out_(lowering),
        c_(c),
        t_(t),
        is_single_part_(c.k.is_number() && c.k.number() <= t.k_part),
        has_even_rows_(c.m.is_number() && c.m.number() % t.rows == 0),
        vectors_(t.columns / target.lanes(byte_size(c.accumulate))) {}

  void write() {
    add_memory();
    const Dim row_blocks = ceil_div(c_.m, t_.chunk_rows);
    const Dim column_blocks = ceil_div(c_.n, t_.chunk_columns);
    kernel_.chunks = c_.batch * row_blocks * column_blocks;
    // Rows change fastest, so that consecutive chunks share B.
    const Dim sizes[] = {c_.batch, column_blocks, row_blocks};
    out_.loop(LoopKind::grid, kernel_.chunks,
              [&](const Dim& chunk) { chunk_of(lowering_.positions().split(chunk, sizes)); });
    kernel_.graph = lowering_.shared_graph();
    kernel_.body = out_.take();
  }

 private:
  // Output rows and columns of one batch entry, and a part of k. Blocks begin at whole tiles.
  struct Range {
    Dim batch, row_begin, row_count, column_begin, column_count, first_panel, k_begin, k_count;
  };
  // Rows [row, row + height) of a range, and a panel of its columns.
  struct Place {
    Dim row, panel;  // relative to the range: a row, the index of a panel
    Dim n;           // the panel's first column
    Dim columns;     // existing columns
    int tile = 0;
    std::int64_t height = 1;
  };

  // ---- scratch

  // First the sums of tiles, then the copy of A.
  void add_memory() {
    const std::int64_t bytes = byte_size(c_.accumulate), line = 64 / bytes;
    const std::int64_t sums =
        round_up(is_single_part_ ? t_.rows * t_.columns : t_.chunk_rows * t_.chunk_columns, line);
    std::int64_t copy = 0;
    if (t_.read_a == ReadA::copy_along_k) {
      copy_stride_ = spread_stride(t_.k_part, bytes);
      copy = t_.chunk_rows * copy_stride_;
    } else if (t_.read_a == ReadA::copy_along_m) {
      copy_stride_ = spread_stride(t_.chunk_rows, bytes);
      copy = t_.k_part * copy_stride_;
    }
    sums_ = static_cast<int>(kernel_.params.size());
    kernel_.memory = {{c_.accumulate, sums}};
    if (copy > 0) kernel_.memory.push_back({c_.accumulate, copy});
    if (c_.makes_b()) {
      made_panel_ = sums_ + static_cast<int>(kernel_.memory.size());
      kernel_.memory.push_back({c_.accumulate, t_.k_part * t_.columns});
    }
    place_memory(kernel_);
  }
  int copy() const { return sums_ + 1; }
  // Panels are padded with zeros after the last column.
  bool has_whole_panels() const { return c_.packed_b >= 0 && !c_.makes_b(); }

  // ---- chunks

  // The part of `count` in a block that starts at `begin`.
  Dim part_of(const Dim& count, const Dim& begin, std::int64_t block) {
    if (count.is_number() && count.number() % block == 0) return block;
    return out_.keep(min(Dim(block), count - begin));
  }

  void chunk_of(const Dims& at) {
    Range r;
    r.batch = out_.keep(at[0]);
    r.row_begin = out_.keep(at[2] * Dim(t_.chunk_rows));
    r.row_count = part_of(c_.m, r.row_begin, t_.chunk_rows);
    r.first_panel = out_.keep(at[1] * Dim(t_.chunk_columns / t_.columns));
    r.column_begin = r.first_panel * Dim(t_.columns);
    r.column_count = part_of(c_.n, r.column_begin, t_.chunk_columns);
    // An empty sum also has one part, which writes zeros.
    const Dim parts = is_single_part_ ? Dim(1) : ceil_div(max(c_.k, Dim(1)), t_.k_part);
    out_.loop(LoopKind::serial, parts, [&](const Dim& part) {
      r.k_begin = part * Dim(t_.k_part);
      r.k_count = is_single_part_ ? c_.k : part_of(c_.k, r.k_begin, t_.k_part);
      if (t_.read_a == ReadA::copy_along_k) copy_along_k(r);
      if (t_.read_a == ReadA::copy_along_m) copy_along_m(r);
      panels(r);
    });
  }

  void panels(const Range& r) {
    out_.loop(LoopKind::serial, ceil_div(r.column_count, t_.columns), [&](const Dim& panel) {
      Place p;
      p.panel = panel;
      p.n = out_.keep(r.column_begin + panel * Dim(t_.columns));
      if (has_whole_panels()) {
        p.columns = t_.columns;
        rows(r, p);
      } else {
        for_columns(p.n, [&](const Dim& columns) {
          p.columns = columns;
          if (c_.makes_b()) make_panel(r, p);
          rows(r, p);
        });
      }
    });
  }

  // Writes the body for a panel that starts at column n: twice, in two branches, if the last panel
  // is narrower than the others.
  void for_columns(const Dim& n, const std::function<void(const Dim& columns)>& body) {
    const std::optional<std::int64_t> known = c_.n.as_number();
    if (known && *known % t_.columns == 0) return body(t_.columns);
    auto narrow = [&] { body(known ? Dim(*known % t_.columns) : out_.keep(c_.n - n)); };
    if (known && *known < t_.columns) return narrow();
    out_.branch(out_.at_most(n + Dim(t_.columns), c_.n), [&] { body(t_.columns); }, narrow);
  }

  // A known number of rows is covered by tiles of one height that fits it, an unknown one by tiles
  // of decreasing height.
  void rows(const Range& r, Place p) {
    auto tiles = [&](const Dim& first, const Dim& count, std::int64_t height) {
      p.tile = tile_of(height);
      p.height = height;
      out_.loop(LoopKind::serial, count, [&](const Dim& i) {
        p.row = first + i * Dim(height);
        tile(r, p);
      });
    };
    if (c_.m.is_number()) return tiles(0, ceil_div(r.row_count, t_.rows), t_.rows);
    Dim first = 0;
    for (std::int64_t height : {t_.rows, std::int64_t{4}, std::int64_t{1}}) {
      if (height > t_.rows || (height == t_.rows && first != Dim(0))) continue;
      const Dim count = out_.keep(floor_div(max(r.row_count - first, Dim(0)), height));
      tiles(first, count, height);
      if (height == 1) break;
      first = out_.keep(first + count * Dim(height));
    }
  }

  int tile_of(std::int64_t height) {
    auto& tiles = kernel_.tiles;
    for (std::size_t i = 0; i < tiles.size(); ++i)
      if (tiles[i].rows == height) return static_cast<int>(i);
    tiles.push_back({c_.accumulate, static_cast<int>(height), static_cast<int>(t_.columns)});
    return static_cast<int>(tiles.size()) - 1;
  }

  // ---- tiles

  // If read in place, the last tile overlaps the previous one: nothing exists past the last row.
  Dim start_of(const Range& r, const Place& p) {
    const Dim row = r.row_begin + p.row;
    const bool overlaps = t_.read_a == ReadA::in_place && c_.m.is_number() && !has_even_rows_;
    return overlaps ? out_.keep(min(row, c_.m - Dim(p.height))) : row;
  }

  void tile(const Range& r, const Place& p) {
    const Dim start = start_of(r, p);
    const Stmt fill = {.kind = Kind::tile_fill,
                       .value = lowering_.number(0, c_.accumulate),
                       .tile = p.tile,
                       .columns = t_.columns};
    if (is_single_part_) {
      out_.add(fill);
    } else {
      out_.branch(
          lowering_.same(r.k_begin, 0), [&] { out_.add(fill); },
          [&] { out_.add(with_sums(Kind::tile_load, r, p)); });
    }
    Stmt multiply{.kind = Kind::tile_multiply, .extent = r.k_count, .tile = p.tile};
    multiply.columns = p.columns;
    multiply.a = window_of_a(r, p, start);
    multiply.b = window_of_b(r, p);
    out_.add(std::move(multiply));
    if (is_single_part_) return results(r, p, start);
    out_.add(with_sums(Kind::tile_store, r, p));
    out_.branch(out_.at_most(c_.k, r.k_begin + r.k_count), [&] { results(r, p, start); });
  }

  // Tiles of the same rows, all of one height, fill their rows' part of the sums.
  Dim place_of_sums(const Place& p) const {
    if (is_single_part_) return 0;
    return p.row * Dim(t_.chunk_columns) + p.panel * Dim(t_.columns * p.height);
  }

  Stmt with_sums(Kind kind, const Range&, const Place& p) const {
    Stmt s{.kind = kind, .tile = p.tile, .columns = t_.columns};
    s.a = {sums_, place_of_sums(p), rows_of(p.height, t_.columns), 1};
    return s;
  }

  static std::vector<std::int64_t> rows_of(std::int64_t count, std::int64_t stride) {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < count; ++i) out.push_back(i * stride);
    return out;
  }

  TileWindow window_of_a(const Range& r, const Place& p, const Dim& start) const {
    if (t_.read_a == ReadA::in_place) {
      const Value load = *plain_load(c_.a, c_.accumulate);
      const std::int64_t row_stride = *stride_along(load, c_.a.vars[1]);
      return {load_param(load), place_of_load(load, c_.a, std::array{r.batch, start, r.k_begin}),
              rows_of(p.height, row_stride), *stride_along(load, c_.a.vars[2])};
    }
    if (t_.read_a == ReadA::copy_along_k)
      return {copy(), p.row * Dim(copy_stride_), rows_of(p.height, copy_stride_), 1};
    return {copy(), p.row, rows_of(p.height, 1), copy_stride_};
  }

  TileWindow window_of_b(const Range& r, const Place& p) const {
    if (c_.packed_b < 0) {
      const Value& load = c_.b.value;
      return {load_param(load),
              place_of_load(load, c_.b, std::array{r.batch, r.k_begin, p.n}),
              {},
              *stride_of(load.attrs().dims("offset").at(0), c_.b.vars[1])};
    }
    if (c_.makes_b()) return {made_panel_, 0, {}, t_.columns};
    return {c_.packed_b, place_in_panel(r, p), {}, t_.columns};
  }

  Dim place_in_panel(const Range& r, const Place& p) const {
    Dim panel = r.first_panel + p.panel;
    if (c_.packed_batch) panel = panel + r.batch * ceil_div(c_.n, t_.columns);
    return (panel * c_.k + r.k_begin) * Dim(t_.columns);
  }

  // Decodes a part of a panel of codes.
  void make_panel(const Range& r, const Place& p) {
    const Dim codes = out_.keep(place_in_panel(r, p));
    out_.loop(LoopKind::serial, r.k_count, [&](const Dim& k) {
      lanes(p.columns, [&](const Dim& column) {
        const Dim in_panel = k * Dim(t_.columns) + column;
        const Dim at[] = {r.batch, r.k_begin + k, p.n + column};
        const Value code = lowering_.load(c_.packed_b, c_.packed_dtype, codes + in_panel);
        const Value made = spliced(lowering_.graph(), c_.b, at, code);
        out_.add({.kind = Kind::store,
                  .param = made_panel_,
                  .offset = in_panel,
                  .value = lowering_.convert(made, c_.accumulate)});
      });
    });
  }

  // ---- results

  // Rows starting at p.row, of a tile computed from `start` on.
  void results(const Range& r, const Place& p, const Dim& start) {
    auto put = [&](const Dim& row, const Dim& column, Value sum) {
      const Dim at[] = {r.batch, start + row, p.n + column};
      for (Stmt& s : spliced_stores(lowering_.graph(), c_.epilogue, at, sum))
        out_.add(std::move(s));
    };
    auto elements = [&](LoopKind kind, const Dim& first, const Dim& count, const auto& element) {
      auto with = [&](const Dim& columns) {
        out_.loop(kind, count, [&](const Dim& i) {
          const Dim row = first + i;
          lanes(columns, [&](const Dim& column) { put(row, column, element(row, column)); });
        });
      };
      has_whole_panels() ? for_columns(p.n, with) : with(p.columns);
    };
    auto from_tile = [&] {
      elements(LoopKind::unrolled, 0, p.height, [&](const Dim& row, const Dim& column) {
        return element_of_tile(lowering_, p.tile, c_.accumulate, row, column);
      });
    };
    auto from_memory = [&] {
      out_.add(with_sums(Kind::tile_store, r, p));
      const Dim first = out_.keep(r.row_begin + p.row - start);
      const bool is_whole = has_even_rows_ || !c_.m.is_number();
      const Dim last =
          is_whole ? Dim(p.height) : out_.keep(min(Dim(p.height), r.row_count - p.row));
      elements(LoopKind::serial, first, last, [&](const Dim& row, const Dim& column) {
        return lowering_.load(sums_, c_.accumulate,
                              place_of_sums(p) + row * Dim(t_.columns) + column);
      });
    };
    if (!is_short(c_.epilogue, p.height, vectors_)) return from_memory();
    // If the number of rows is unknown, tiles are always whole.
    if (has_even_rows_ || !c_.m.is_number()) return from_tile();
    out_.branch(out_.at_most(p.row + Dim(p.height), r.row_count), from_tile, from_memory);
  }

  void lanes(const Dim& count, const std::function<void(const Dim&)>& body) {
    out_.loop(LoopKind::lanes, count, body);
  }

  // ---- the copy of A

  // Rounded up to whole tiles, if tiles are not fitted to the rows.
  Dim rows_to_copy(const Range& r) const {
    if (!c_.m.is_number() || has_even_rows_) return r.row_count;
    return ceil_div(r.row_count, t_.rows) * Dim(t_.rows);
  }

  void store_copy(const Dim& place, Value v) {
    out_.add({.kind = Kind::store,
              .param = copy(),
              .offset = place,
              .value = lowering_.convert(v, c_.accumulate)});
  }

  void copy_along_k(const Range& r) {
    out_.loop(LoopKind::serial, rows_to_copy(r), [&](const Dim& row) {
      // Rows of the last tile that do not exist repeat the last one.
      const bool repeats = c_.m.is_number() && !has_even_rows_;
      const Dim from = out_.keep(r.row_begin + (repeats ? min(row, r.row_count - Dim(1)) : row));
      lanes(r.k_count, [&](const Dim& k) {
        const Dim at[] = {r.batch, from, r.k_begin + k};
        store_copy(row * Dim(copy_stride_) + k, spliced(lowering_.graph(), c_.a, at));
      });
    });
  }

  void copy_along_m(const Range& r) {
    const Dim behind = rows_to_copy(r) - r.row_count;
    out_.loop(LoopKind::serial, r.k_count, [&](const Dim& k) {
      const Dim at_k = k * Dim(copy_stride_);
      lanes(r.row_count, [&](const Dim& row) {
        const Dim at[] = {r.batch, r.row_begin + row, r.k_begin + k};
        store_copy(at_k + row, spliced(lowering_.graph(), c_.a, at));
      });
      out_.loop(LoopKind::serial, behind, [&](const Dim& i) {
        store_copy(at_k + r.row_count + i, lowering_.number(0, c_.accumulate));
      });
    });
  }

  Kernel& kernel_;
  Lowering& lowering_;
  BlockWriter out_;
  const Contraction& c_;
  const ContractionTuning& t_;
  bool is_single_part_, has_even_rows_;
  std::int64_t vectors_, copy_stride_ = 0;
  int sums_ = 0, made_panel_ = -1;
};

}  // namespace

void write_contraction(Kernel& kernel, Lowering& lowering, const Contraction& c,
                       const ContractionTuning& t, const TargetInfo& target) {
  ContractionWriter(kernel, lowering, c, t, target).write();
}

}  // namespace hone
