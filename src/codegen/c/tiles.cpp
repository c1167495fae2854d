// The part of Renderer that writes register tiles: each vector of a row is a variable, so that it
// stays in a register. If expressions read elements, the tile is first copied to memory.
#include <algorithm>

#include "codegen/c/expression.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone::c {

Renderer::TileForm Renderer::tile_form(int tile) const {
  const KernelTile& t = kernel_.tiles.at(static_cast<std::size_t>(tile));
  TileForm form;
  form.dtype = t.dtype;
  form.rows = t.rows;
  form.lanes = vector_bytes_ / byte_size(t.dtype);
  form.vectors = t.columns / form.lanes;
  HONE_ASSERT(form.vectors * form.lanes == t.columns, "a tile of ", t.columns, " columns for ",
              form.lanes, " lanes");
  form.name = cat("t", tile);
  form.type = Helpers::vector_type(t.dtype, form.lanes);
  return form;
}

Renderer::TileForm Renderer::use_tile(int tile) {
  used_tiles_.insert(tile);
  TileForm form = tile_form(tile);
  form.macro = helpers_.vector(form.dtype, form.lanes);
  return form;
}

void Renderer::declare_tiles(Text& out) const {
  for (int t = 0; t < std::ssize(kernel_.tiles); ++t) {
    if (!used_tiles_.contains(t)) continue;
    const TileForm form = tile_form(t);
    for (int r = 0; r < form.rows; ++r) {
      std::string names;
      for (int v = 0; v < form.vectors; ++v) names += cat(v ? ", " : "", form.vector(r, v));
      out.line(form.type, " ", names, ";");
    }
  }
}

std::string Renderer::window(const TileWindow& w) {
  return cat(buffer(w.param), " + (", position(w.offset), ")");
}

// The number of columns; empty: all.
std::string Renderer::tile_columns(const Stmt& s) {
  const KernelTile& t = kernel_.tiles[static_cast<std::size_t>(s.tile)];
  return s.columns == Dim(t.columns) ? "" : factor(s.columns);
}

// A pointer to a row in the tile's dtype, converted from the elements at `from` if necessary.
std::string Renderer::tile_row(const TileForm& form, int param, const std::string& from,
                               const std::string& columns) {
  const DType dtype = buffer_dtype(param);
  if (dtype == form.dtype) return from;
  const std::string row = fresh("row"), l = fresh("l");
  const std::int64_t width = std::int64_t{form.vectors} * form.lanes;
  out_.line(memory_type(form.dtype), " ", row, "[", width, "];");
  const std::string count = columns.empty() ? index(width) : columns;
  if (dtype == DType::f16 && form.dtype == DType::f32) {
    out_.line(helpers_.use("row_of_f16"), "(", row, ", ", from, ", ", count, ");");
    return row;
  }
  out_.line("for (int64_t ", l, " = 0; ", l, " < ", count, "; ++", l, ") ", row, "[", l, "] = ",
            cast_number(register_dtype(dtype), form.dtype,
                        from_memory(dtype, cat("(", from, ")[", l, "]"))),
            ";");
  return row;
}

void Renderer::tile_fill(const Stmt& s) {
  const TileForm form = use_tile(s.tile);
  const Value& v = s.value;
  const bool is_zero = v.is(ops::constant) && v.attrs().get<Array>("value").real(0) == 0;
  const std::string l = fresh("l"), x = is_zero ? "" : value(v), row = fresh("row");
  if (!is_zero) {
    out_.open();
    out_.line(memory_type(form.dtype), " ", row, "[", form.lanes, "];");
    out_.line("for (int64_t ", l, " = 0; ", l, " < ", form.lanes, "; ++", l, ") ", row, "[", l,
              "] = ", x, ";");
  }
  for (int r = 0; r < form.rows; ++r)
    for (int i = 0; i < form.vectors; ++i)
      is_zero ? out_.line(form.macro, "_ZERO(", form.vector(r, i), ");")
              : out_.line(form.macro, "_LOAD(", form.vector(r, i), ", ", row, ");");
  if (!is_zero) out_.close();
  forget_registers();
}

void Renderer::tile_load(const Stmt& s) {
  const TileForm form = use_tile(s.tile);
  const std::string columns = tile_columns(s), from = fresh("from");
  out_.open();
  out_.line("const ", memory_type(buffer_dtype(s.a.param)), " *const ", from, " = ", window(s.a),
            ";");
  for (int r = 0; r < form.rows; ++r) {
    const std::string row = tile_row(
        form, s.a.param, cat(from, " + ", index(s.a.rows[static_cast<std::size_t>(r)])), columns);
    for (int v = 0; v < form.vectors; ++v) {
      const std::string to = form.vector(r, v), place = cat(row, " + ", v * form.lanes);
      columns.empty() ? out_.line(form.macro, "_LOAD(", to, ", ", place, ");")
                      : out_.line(form.macro, "_LOAD_PART(", to, ", ", place, ", ", columns, " - ",
                                  v * form.lanes, ");");
    }
  }
  out_.close();
  forget_registers();
}

void Renderer::tile_store(const Stmt& s) {
  const TileForm form = use_tile(s.tile);
  const std::string columns = tile_columns(s), to = fresh("to");
  const DType dtype = buffer_dtype(s.a.param);
  out_.open();
  out_.line(memory_type(dtype), " *const ", to, " = ", window(s.a), ";");
  const bool is_direct = columns.empty() && dtype == form.dtype;
  const std::string row = fresh("row"), l = fresh("l");
  if (!is_direct)
    out_.line(memory_type(form.dtype), " ", row, "[", form.vectors * form.lanes, "];");
  for (int r = 0; r < form.rows; ++r) {
    const std::string at = cat(to, " + ", index(s.a.rows[static_cast<std::size_t>(r)]));
    for (int v = 0; v < form.vectors; ++v)
      out_.line(form.macro, "_STORE(", is_direct ? at : row, " + ", v * form.lanes, ", ",
                form.vector(r, v), ");");
    if (is_direct) continue;
    out_.line(
        "for (int64_t ", l, " = 0; ", l, " < ",
        columns.empty() ? index(form.vectors * form.lanes) : columns, "; ++", l, ") (", at, ")[", l,
        "] = ",
        to_memory(dtype, cast_number(form.dtype, register_dtype(dtype), cat(row, "[", l, "]"))),
        ";");
  }
  out_.close();
  forget_memory();
}

// One step k, at offsets `a_place` and `b_place` from the pointers `a` and `b`.
void Renderer::tile_step(const Stmt& s, const TileForm& form, const std::string& columns,
                         std::int64_t a_place, std::int64_t b_place) {
  auto load = [&](const std::string& to, const std::string& row, int v) {
    const std::string place = cat(row, " + ", index(std::int64_t{v} * form.lanes));
    columns.empty() ? out_.line(form.macro, "_LOAD(", to, ", ", place, ");")
                    : out_.line(form.macro, "_LOAD_PART(", to, ", ", place, ", ", columns, " - ",
                                v * form.lanes, ");");
  };
  auto place = [&](const char* base, std::int64_t at) {
    return at == 0 ? std::string(base) : cat(base, " + ", index(at));
  };
  std::string of_b;
  for (int v = 0; v < form.vectors; ++v) of_b += cat(v ? ", b" : "b", v);
  out_.line(form.type, " ", of_b, s.a_has_columns ? ", x;" : ";");
  const std::string row_of_b = tile_row(form, s.b.param, place("b", b_place), columns);
  for (int v = 0; v < form.vectors; ++v) load(cat("b", v), row_of_b, v);
  const DType a_type = buffer_dtype(s.a.param);
  const std::string_view element =
      is_float(form.dtype) ? memory_type(form.dtype) : wrapping_type(form.dtype);
  if (!s.a_has_columns) out_.line(element, " factor;");
  for (int r = 0; r < form.rows; ++r) {
    const std::int64_t at = a_place + s.a.rows[static_cast<std::size_t>(r)];
    if (s.a_has_columns) {
      const std::string row_of_a = tile_row(form, s.a.param, place("a", at), columns);
      for (int v = 0; v < form.vectors; ++v) {
        load("x", row_of_a, v);
        out_.line(form.macro, "_MULADD2(", form.vector(r, v), ", x, b", v, ");");
      }
      continue;
    }
    out_.line("factor = (", element, ")",
              a_type == form.dtype ? cat("a[", at, "]")
                                   : cast_number(register_dtype(a_type), form.dtype,
                                                 from_memory(a_type, cat("a[", at, "]"))),
              ";");
    for (int v = 0; v < form.vectors; ++v)
      out_.line(form.macro, "_MULADD(", form.vector(r, v), ", factor, b", v, ");");
  }
}

void Renderer::tile_multiply(const Stmt& s) {
  constexpr std::int64_t most_written_out = 32;
  HONE_ASSERT(s.k_group == 1, "k in groups of ", s.k_group, " is not written as C");
  const TileForm form = use_tile(s.tile);
  const std::string columns = tile_columns(s);
  auto pointer = [&](const char* name, const TileWindow& w) {
    out_.line("const ", memory_type(buffer_dtype(w.param)), " *", name, " = ", window(w), ";");
  };
  out_.open();
  pointer("a", s.a);
  pointer("b", s.b);
  const std::optional<std::int64_t> number = s.extent.as_number();
  if (s.a_has_columns && number && *number <= most_written_out && s.a.stride.is_number() &&
      s.b.stride.is_number()) {
    for (std::int64_t k = 0; k < *number; ++k) {
      out_.open();
      tile_step(s, form, columns, k * s.a.stride.number(), k * s.b.stride.number());
      out_.close();
    }
  } else {
    out_.open("for (int64_t k = 0, steps = ", position(s.extent), "; k < steps; ++k)");
    tile_step(s, form, columns, 0, 0);
    out_.line("a += ", position(s.a.stride), ";");
    out_.line("b += ", position(s.b.stride), ";");
    out_.close();
  }
  out_.close();
  forget_registers();
}

// ---- elements

// For a loop or a store that reads elements of tiles: copies those tiles to memory, then writes the
// statement. False if the statement reads none, or is inside such a statement.
bool Renderer::show_tiles(const Stmt& reader) {
  const bool may_be = reader.kind == Stmt::Kind::loop || reader.kind == Stmt::Kind::store;
  if (!may_be || kernel_.tiles.empty() || !shown_tiles_.empty()) return false;
  std::vector<int> tiles;
  bool changes = false;
  for_each_statement({reader}, [&](const Stmt& s) {
    changes = changes || s.tile >= 0;
    for (const Value& root : values_of(s))
      for (NodeId n : nodes_below(std::span(&root, 1))) {
        const Value v(&root.graph(), n);
        if (!v.is(ops::tile_element)) continue;
        const int tile = static_cast<int>(v.attrs().integer("index"));
        if (std::find(tiles.begin(), tiles.end(), tile) == tiles.end()) tiles.push_back(tile);
      }
  });
  if (tiles.empty() || changes) return false;
  out_.open();
  for (int t : tiles) {
    const TileForm form = use_tile(t);
    const std::string name = fresh("shown");
    out_.line(memory_type(form.dtype), " ", name, "[", form.rows * form.vectors * form.lanes, "];");
    for (int r = 0; r < form.rows; ++r)
      for (int v = 0; v < form.vectors; ++v)
        out_.line(form.macro, "_STORE(", name, " + ", (r * form.vectors + v) * form.lanes, ", ",
                  form.vector(r, v), ");");
    shown_tiles_[t] = name;
  }
  statement(reader);
  shown_tiles_.clear();
  out_.close();
  return true;
}

std::string Renderer::tile_element(const Value& e) {
  const int tile = static_cast<int>(e.attrs().integer("index"));
  const Dims& at = e.attrs().dims("offset");
  const std::int64_t width = kernel_.tiles[static_cast<std::size_t>(tile)].columns;
  if (dialect_.has_groups) {
    const auto turned = tile_rows_.find(tile);
    const Dim row = turned != tile_rows_.end() && loop_of(at[0]) == turned->second ? Dim(0) : at[0];
    return in_array(cat("t", tile), position(row * Dim(width) + at[1]));
  }
  auto it = shown_tiles_.find(tile);
  HONE_ASSERT(it != shown_tiles_.end(), "an element of tile ", tile, " is read outside of loops");
  return cat(it->second, "[", position(at[0] * Dim(width) + at[1]), "]");
}

}  // namespace hone::c
