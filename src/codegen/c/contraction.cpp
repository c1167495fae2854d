#include "kernel/contraction.h"

#include "base/error.h"
#include "codegen/c/skeleton.h"
#include "kernel/blocking.h"

namespace hone::c {

namespace {

using ReadA = Contraction::ReadA;

class ContractionWriter {
 public:
  ContractionWriter(const Site& site, const Contraction& c)
      : site_(site),
        out_(site.out),
        c_(c),
        scratch_(scratch_of(c)),
        type_(memory_type(c.accumulate)),
        rows_(site.renderer.factor(c.m)),
        columns_(site.renderer.factor(c.n)),
        depth_(site.renderer.factor(c.k)),
        lanes_(site.vector_bytes / byte_size(c.accumulate)) {
    HONE_ASSERT(c.block % lanes_ == 0, "block of ", c.block, " for ", lanes_, " lanes");
  }

  void write() {
    out_.line(type_, " *const sums = (", type_, " *)(void *)scratch;");
    if (c_.read_a != ReadA::in_place)
      out_.line(type_, " *const copy = sums + ", scratch_.sums, ";");
    const std::string row_blocks = blocks(c_.m, c_.chunk_rows),
                      column_blocks = blocks(c_.n, c_.chunk_columns);
    out_.open("for (int64_t chunk = begin; chunk < end; ++chunk)");
    out_.line("const int64_t outer = chunk / ", row_blocks, ";");
    if (uses_batch()) out_.line("const int64_t batch = outer / ", column_blocks, ";");
    out_.line("const int64_t row_begin = chunk % ", row_blocks, " * ", c_.chunk_rows, ";");
    out_.line("const int64_t row_end = ", least(cat("row_begin + ", c_.chunk_rows), rows_), ";");
    out_.line("const int64_t column_begin = outer % ", column_blocks, " * ", c_.chunk_columns, ";");
    out_.line("const int64_t column_end = ",
              least(cat("column_begin + ", c_.chunk_columns), columns_), ";");
    if (is_single_part(c_)) {
      out_.line("const int64_t k_begin = 0, k_count = ", depth_, ";");
      part();
    } else {
      // An empty sum has one part too, which writes zeros.
      const std::string end =
          c_.k.low() > 0 ? depth_ : cat(site_.helpers.use("max_i64"), "(", depth_, ", 1)");
      out_.open("for (int64_t k_begin = 0; k_begin < ", end, "; k_begin += ", c_.k_block, ")");
      out_.line("const int64_t k_count = ", least(cat(depth_, " - k_begin"), cat(c_.k_block)), ";");
      part();
      out_.close();
    }
    out_.close();
  }

 private:
  std::string least(const std::string& a, const std::string& b) {
    return cat(site_.helpers.use("min_i64"), "(", a, ", ", b, ")");
  }

  // How many blocks cover a size, at least one.
  std::string blocks(const Dim& size, std::int64_t block) {
    if (size.is_number()) return index(std::max<std::int64_t>(1, ceil_ratio(size.number(), block)));
    return cat("((", site_.renderer.position(size), " + ", block - 1, ") / ", block, ")");
  }

  bool uses_batch() const { return !(c_.batch == Dim(1)); }
  std::string batch() const { return uses_batch() ? "batch" : "0"; }

  void part() {
    if (c_.read_a == ReadA::copy_along_k) copy_along_k();
    if (c_.read_a == ReadA::copy_along_m) copy_along_m();
    out_.open("for (int64_t n = column_begin; n < column_end; n += ", c_.block, ")");
    const bool is_whole = c_.n.is_number() && c_.n.number() % c_.block == 0;
    if (!is_whole)
      out_.line("const int64_t columns = ", least(cat(columns_, " - n"), cat(c_.block)), ";");
    columns_of_panel_ = is_whole ? cat(c_.block) : "columns";
    if (c_.packed_b >= 0 || is_whole) {
      rows_of_panel("");
    } else {
      // Elements behind the end of a row are another row's, or nobody's.
      out_.open("if (columns == ", c_.block, ")");
      rows_of_panel("");
      out_.close(" else {");
      out_.indent();
      rows_of_panel("columns");
      out_.close();
    }
    out_.close();
  }

  // A known number of rows is covered by tiles of one height, chosen to fit it; an unknown one by
  // these and single rows.
  void rows_of_panel(const std::string& columns) {
    const int vectors =
        columns.empty() || !c_.n.is_number()
            ? c_.block / lanes_
            : static_cast<int>(ceil_ratio(c_.n.number() % c_.block, std::int64_t{lanes_}));
    if (c_.m.is_number()) {
      out_.open("for (int64_t row = row_begin; row < row_end; row += ", c_.rows, ")");
      tile(c_.rows, vectors, columns);
      out_.close();
      return;
    }
    out_.line("int64_t row = row_begin;");
    for (int height : {c_.rows, 1}) {
      out_.open("for (; row + ", height, " <= row_end; row += ", height, ")");
      tile(height, vectors, columns);
      out_.close();
      if (c_.rows == 1) break;
    }
  }

  void tile(int rows, int vectors, const std::string& columns) {
    // Read in place, the last tile overlaps the one before: there is nothing behind the last row.
    const bool overlaps = c_.read_a == ReadA::in_place && c_.m.is_number();
    const bool may_overlap = overlaps && c_.m.number() % rows != 0;
    const std::string start = may_overlap ? "start" : "row";
    if (may_overlap)
      out_.line("const int64_t start = ", least("row", cat(c_.m.number() - rows)), ";");
    out_.line(type_, " *const to = ", place_of_sums(rows), ";");
    const Tile tile(out_, site_.helpers, c_.accumulate, rows, vectors, lanes_);
    out_.open();
    tile.declare();
    if (is_single_part(c_)) {
      tile.zero();
    } else {
      out_.open("if (k_begin == 0)");
      tile.zero();
      out_.close(" else {");
      out_.indent();
      tile.load("to");
      out_.close();
    }
    tile.multiply_add(product(rows, start, columns));
    tile.store("to");
    out_.close();
    if (!is_single_part(c_)) out_.open("if (k_begin + k_count >= ", depth_, ")");
    results(tile, start);
    if (!is_single_part(c_)) out_.close();
  }

  // Tiles of the same rows, one height, fill these rows' part of the sums.
  std::string place_of_sums(int height) const {
    if (is_single_part(c_)) return "sums";
    return cat("sums + (row - row_begin) * ", c_.chunk_columns, " + (n - column_begin) * ", height);
  }

  Tile::Product product(int rows, const std::string& start, const std::string& columns) {
    Tile::Product p;
    p.count = "k_count";
    p.columns = columns;
    std::int64_t stride = 1;
    if (c_.read_a == ReadA::in_place) {
      const std::string vars[] = {batch(), start, "k_begin"};
      p.a = address(c_.a, vars);
      stride = c_.a_row_stride;
      p.step = c_.a_k_stride;
    } else if (c_.read_a == ReadA::copy_along_k) {
      stride = scratch_.copy_stride;
      p.a = cat("copy + (row - row_begin) * ", stride);
    } else {
      p.a = "copy + (row - row_begin)";
      p.step = scratch_.copy_stride;
    }
    for (int i = 0; i < rows; ++i) p.offsets.push_back(i * stride);
    p.row_of_b = [this](const std::string& k) {
      if (c_.packed_b < 0) {
        const std::string vars[] = {batch(), cat("(k_begin + ", k, ")"), "n"};
        if (b_is_read_in_place()) return address(c_.b, vars);
        out_.line(type_, " row_of_b[", c_.block, "] = {0};");
        write_elements(site_, c_.b, vars, 2, columns_of_panel_, c_.accumulate, "row_of_b");
        return std::string("row_of_b");
      }
      std::string panel = cat("n / ", c_.block);
      if (c_.packed_batch) panel = cat("(", panel, " + batch * ", blocks(c_.n, c_.block), ")");
      return cat(site_.renderer.buffer(c_.packed_b), " + (", panel, " * ", depth_, " + k_begin + ",
                 k, ") * ", c_.block);
    };
    return p;
  }

  bool b_is_read_in_place() const {
    return c_.b.value.is(ops::load) && c_.b.value.dtype() == c_.accumulate;
  }

  std::string address(const Hole& hole, std::span<const std::string> vars) {
    site_.renderer.forget();
    for (std::size_t i = 0; i < vars.size(); ++i)
      site_.renderer.set_variable(hole.vars[i], vars[i]);
    return site_.renderer.address(hole.value);
  }

  // Rows from `row` on, of a tile that was computed from `start` on.
  void results(const Tile& tile, const std::string& start) {
    const bool is_whole = !c_.m.is_number() || c_.m.number() % tile.rows() == 0;
    const std::string first = start == "row" ? "0" : "row - start";
    const std::string last =
        is_whole ? cat(tile.rows()) : least(cat("row_end - ", start), cat(tile.rows()));
    out_.open("for (int64_t r = ", first, ", last = ", last, "; r < last; ++r)");
    const std::string vars[] = {batch(), cat("(", start, " + r)"), "n"};
    out_.line("const ", type_, " *const of_row = to + r * ", tile.block(), ";");
    write_results(site_, c_.epilogue, vars, columns_of_panel_, "of_row");
    out_.close();
  }

  // ---- the copy of A

  // Rows up to a whole number of tiles, when tiles are fitted to the rows.
  std::string rows_to_copy() const {
    if (!c_.m.is_number()) return "row_end - row_begin";
    return cat("(row_end - row_begin + ", c_.rows - 1, ") / ", c_.rows, " * ", c_.rows);
  }

  void copy_along_k() {
    out_.open("for (int64_t row = 0, rows = ", rows_to_copy(), "; row < rows; ++row)");
    // Rows of the last tile that do not exist repeat the last one.
    out_.line("const int64_t from = ", least("row_begin + row", "row_end - 1"), ";");
    out_.line(type_, " *const to = copy + row * ", scratch_.copy_stride, ";");
    const std::string vars[] = {batch(), "from", "k_begin"};
    write_elements(site_, c_.a, vars, 2, "k_count", c_.accumulate, "to");
    out_.close();
  }

  void copy_along_m() {
    out_.open("for (int64_t k = 0; k < k_count; ++k)");
    out_.line(type_, " *const to = copy + k * ", scratch_.copy_stride, ";");
    const std::string vars[] = {batch(), "row_begin", "(k_begin + k)"};
    write_elements(site_, c_.a, vars, 1, "row_end - row_begin", c_.accumulate, "to");
    if (c_.m.is_number() && c_.m.number() % c_.rows != 0)
      out_.line("for (int64_t row = row_end - row_begin, rows = ", rows_to_copy(),
                "; row < rows; ++row) to[row] = 0;");
    out_.close();
  }

  const Site& site_;
  Text& out_;
  const Contraction& c_;
  ContractionScratch scratch_;
  std::string type_, rows_, columns_, depth_, columns_of_panel_;
  int lanes_;
};

}  // namespace

void write_contraction(const Site& site, const Contraction& c) {
  ContractionWriter(site, c).write();
}

}  // namespace hone::c
