#include "kernel/contraction.h"

#include "base/error.h"
#include "codegen/llvm/skeleton.h"

namespace hone::llvm {

namespace {

using ReadA = Contraction::ReadA;

class ContractionEmitter {
 public:
  ContractionEmitter(Module& m, const Kernel& kernel, const KernelArguments& in, const LoadHole& a,
                     const LoadHole& b, const StoreHole& epilogue)
      : m_(m),
        c_(std::get<Contraction>(kernel.body)),
        in_(in),
        a_(a),
        b_(b),
        epilogue_(epilogue),
        scratch_(scratch_of(c_)),
        rows_(size_of(m, in, kernel.sizes, c_.m)),
        columns_(size_of(m, in, kernel.sizes, c_.n)),
        depth_(size_of(m, in, kernel.sizes, c_.k)) {
    tile_.dtype = c_.accumulate;
    tile_.rows = c_.rows;
    tile_.lanes = m.target().lanes(static_cast<int>(byte_size(c_.accumulate)));
    tile_.vectors = c_.block / tile_.lanes;
    HONE_ASSERT(tile_.block() == c_.block, "block of ", c_.block, " for ", tile_.lanes, " lanes");
  }

  void emit() {
    m_.loop(in_.begin, in_.end, 1, [&](Value chunk) { emit_chunk(chunk); });
  }

 private:
  // Output rows [row_begin, row_end), columns [column_begin, column_end) of one batch entry, and
  // the part [k_begin, k_begin + k_count) of k.
  struct Range {
    Value batch, row_begin, row_end, column_begin, column_end, k_begin, k_count;
  };

  void emit_chunk(Value chunk) {
    Value row_blocks = divide_index(rows_ + (c_.chunk_rows - 1), m_.index(c_.chunk_rows));
    Value column_blocks =
        divide_index(columns_ + (c_.chunk_columns - 1), m_.index(c_.chunk_columns));
    Value outer = divide_index(chunk, row_blocks);
    Range r;
    r.batch = divide_index(outer, column_blocks);
    r.row_begin = modulo_index(chunk, row_blocks) * c_.chunk_rows;
    r.row_end = minimum(r.row_begin + c_.chunk_rows, rows_);
    r.column_begin = modulo_index(outer, column_blocks) * c_.chunk_columns;
    r.column_end = minimum(r.column_begin + c_.chunk_columns, columns_);
    if (is_single_part(c_)) {
      r.k_begin = m_.index(0);
      r.k_count = depth_;
      return emit_part(r);
    }
    // An empty sum has one part too, which writes zeros.
    m_.loop(m_.index(0), maximum(depth_, m_.index(1)), c_.k_block, [&](Value k) {
      r.k_begin = k;
      r.k_count = minimum(depth_ - k, m_.index(c_.k_block));
      emit_part(r);
    });
  }

  void emit_part(const Range& r) {
    if (c_.read_a == ReadA::copy_along_k) copy_along_k(r);
    if (c_.read_a == ReadA::copy_along_m) copy_along_m(r);
    m_.loop(r.column_begin, r.column_end, c_.block, [&](Value n) {
      if (c_.packed_b >= 0) return emit_panel(r, n, tile_, std::nullopt);
      for_panel(m_, tile_, n, columns_, c_.n.as_number(), [&](const ColumnMasks& columns) {
        RegisterTile narrow = tile_;
        narrow.vectors = columns.vectors;
        emit_panel(r, n, narrow, columns);
      });
    });
  }

  // A known number of rows is covered by tiles of one height, chosen to fit it; an unknown one by
  // ever lower tiles.
  void emit_panel(const Range& r, Value n, RegisterTile tile,
                  const std::optional<ColumnMasks>& columns) {
    if (c_.m.is_number()) {
      m_.loop(r.row_begin, r.row_end, tile.rows,
              [&](Value row) { emit_tile(r, row, n, tile, columns); });
      return;
    }
    Value row = r.row_begin;
    for (int height : {c_.rows, 4, 1}) {
      if (height > c_.rows || (height == c_.rows && height != tile.rows)) continue;
      tile.rows = height;
      Value end = row + divide_index(r.row_end - row, m_.index(height)) * height;
      m_.loop(row, end, height, [&](Value at) { emit_tile(r, at, n, tile, columns); });
      row = end;
      if (height == 1) break;
    }
  }

  void emit_tile(const Range& r, Value row, Value n, const RegisterTile& tile,
                 const std::optional<ColumnMasks>& columns) {
    Pointer sums = sums_of(r, row, n, tile.rows);
    // Read in place, the last tile overlaps the one before: there is nothing behind the last row.
    bool overlaps = c_.read_a == ReadA::in_place && c_.m.is_number();
    Value start = overlaps ? minimum(row, rows_ - tile.rows) : row;
    Values tile_sums =
        multiply_add(m_, tile, starting_sums(r, tile, sums), rows_of_a(r, start, tile),
                     columns_of_b(r, n, tile, columns), r.k_count);
    if (is_single_part(c_)) return store_results(r, row, start, n, tile, columns, sums, tile_sums);
    store_tile(tile, sums, tile_sums);
    m_.if_(less_equal(depth_, r.k_begin + r.k_count),
           [&] { store_results(r, row, start, n, tile, columns, sums, tile_sums); });
  }

  // Rows from `row` on, of a tile that was computed from `start` on.
  void store_results(const Range& r, Value row, Value start, Value n, const RegisterTile& tile,
                     const std::optional<ColumnMasks>& columns, Pointer sums,
                     const Values& tile_sums) {
    TileEpilogue put = [&](Value i, int v, Value x, std::optional<Value> mask) {
      Value vars[] = {r.batch, start + i, n + std::int64_t{v} * tile.lanes};
      epilogue_(vars, x, mask);
    };
    auto for_columns = [&](const std::function<void(const ColumnMasks&)>& body) {
      columns ? body(*columns) : for_panel(m_, tile, n, columns_, c_.n.as_number(), body);
    };
    auto store_all = [&] {
      for_columns([&](const ColumnMasks& masks) { store_whole(m_, tile, tile_sums, masks, put); });
    };
    auto store_part = [&] {
      store_tile(tile, sums, tile_sums);
      Value last = minimum(r.row_end - start, m_.index(tile.rows));
      for_columns([&](const ColumnMasks& masks) {
        store_rows(m_, tile, sums, row - start, last, masks, put);
      });
    };
    if (!is_short(c_.epilogue, tile)) return store_part();
    // Tiles of an unknown number of rows are always whole.
    if (!c_.m.is_number() || c_.m.number() % tile.rows == 0) return store_all();
    m_.if_(equal(row, start) & less_equal(start + tile.rows, r.row_end), store_all, store_part);
  }

  // Tiles of the same rows, one height, fill these rows' part of the sums.
  Pointer sums_of(const Range& r, Value row, Value n, int height) const {
    if (is_single_part(c_)) return in_.scratch;
    Value tile = (row - r.row_begin) * c_.chunk_columns + (n - r.column_begin) * height;
    return offset(in_.scratch, tile_.dtype, tile);
  }

  Values starting_sums(const Range& r, const RegisterTile& tile, Pointer sums) {
    if (is_single_part(c_)) return zero_tile(m_, tile);
    return m_.if_values(
        equal(r.k_begin, 0), [&] { return zero_tile(m_, tile); },
        [&] { return load_tile(tile, sums); });
  }

  TileRows rows_of_a(const Range& r, Value row, const RegisterTile& tile) const {
    TileRows out;
    std::int64_t stride = 1;
    if (c_.read_a == ReadA::in_place) {
      Value vars[] = {r.batch, row, r.k_begin};
      out.base = a_.address(vars);
      stride = c_.a_row_stride;
      out.step = c_.a_k_stride;
    } else if (c_.read_a == ReadA::copy_along_k) {
      stride = scratch_.copy_stride;
      out.base = offset(copy(), tile.dtype, (row - r.row_begin) * stride);
    } else {
      out.base = offset(copy(), tile.dtype, row - r.row_begin);
      out.step = scratch_.copy_stride;
    }
    for (int i = 0; i < tile.rows; ++i) out.offsets.push_back(i * stride);
    return out;
  }

  TileColumns columns_of_b(const Range& r, Value n, const RegisterTile& tile,
                           const std::optional<ColumnMasks>& columns) const {
    if (c_.packed_b < 0) {
      return [this, r, n, tile, masks = *columns](Value k, int v) {
        Value vars[] = {r.batch, r.k_begin + k, n + std::int64_t{v} * tile.lanes};
        return b_.elements(vars, 2, tile.lanes, masks.of_vector[static_cast<std::size_t>(v)]);
      };
    }
    Value panel = divide_index(n, m_.index(c_.block));
    if (c_.packed_batch) {
      Value panels = divide_index(columns_ + (c_.block - 1), m_.index(c_.block));
      panel = panel + r.batch * panels;
    }
    Value row = panel * depth_ + r.k_begin;
    Pointer packed = in_.buffers[static_cast<std::size_t>(c_.packed_b)];
    return packed_columns(tile, offset(packed, tile.dtype, row * c_.block));
  }

  // ---- the copy of A

  Pointer copy() const { return offset(in_.scratch, tile_.dtype, scratch_.sums); }

  // Rows up to a whole number of tiles, when tiles are not fitted to the rows.
  Value rows_to_copy(const Range& r) const {
    Value rows = r.row_end - r.row_begin;
    if (!c_.m.is_number()) return rows;
    return divide_index(rows + (c_.rows - 1), m_.index(c_.rows)) * c_.rows;
  }

  void copy_along_k(const Range& r) {
    m_.loop(m_.index(0), rows_to_copy(r), 1, [&](Value row) {
      // Rows of the last tile that do not exist repeat the last one.
      Value from = minimum(r.row_begin + row, r.row_end - 1);
      Pointer to = offset(copy(), tile_.dtype, row * scratch_.copy_stride);
      for_vectors(m_, tile_.lanes, r.k_count, [&](Value k, std::optional<Value> mask) {
        Value vars[] = {r.batch, from, r.k_begin + k};
        store(tile_.dtype, offset(to, tile_.dtype, k), a_.elements(vars, 2, tile_.lanes, mask));
      });
    });
  }

  void copy_along_m(const Range& r) {
    Value count = rows_to_copy(r), exist = r.row_end - r.row_begin;
    m_.loop(m_.index(0), r.k_count, 1, [&](Value k) {
      Pointer to = offset(copy(), tile_.dtype, k * scratch_.copy_stride);
      m_.loop(m_.index(0), count, tile_.lanes, [&](Value row) {
        Value vars[] = {r.batch, r.row_begin + row, r.k_begin + k};
        Value mask = m_.tail_mask(maximum(exist - row, m_.index(0)), tile_.lanes);
        store(tile_.dtype, offset(to, tile_.dtype, row), a_.elements(vars, 1, tile_.lanes, mask));
      });
    });
  }

  Module& m_;
  const Contraction& c_;
  const KernelArguments& in_;
  const LoadHole &a_, &b_;
  const StoreHole& epilogue_;
  ContractionScratch scratch_;
  RegisterTile tile_;
  Value rows_, columns_, depth_;
};

}  // namespace

void emit_contraction(Module& m, const Kernel& kernel, const KernelArguments& in, const LoadHole& a,
                      const LoadHole& b, const StoreHole& epilogue) {
  ContractionEmitter(m, kernel, in, a, b, epilogue).emit();
}

}  // namespace hone::llvm
