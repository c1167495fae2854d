// The part of Renderer that renders register tiles: each is a set of vectors in registers, row by
// row, which loops and branches carry like other registers.
#include <llvm-c/Core.h>

#include <algorithm>

#include "base/error.h"
#include "codegen/llvm/expression.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone::llvm {

namespace {

using Kind = Stmt::Kind;

// Vectors of tiles are registers with numbers that no kernel declares.
constexpr RegId first_of_tiles = 1 << 24, most_vectors = 1 << 10;

bool fills(const Stmt& s) { return s.kind == Kind::tile_fill || s.kind == Kind::tile_load; }

bool mentions_tile(const hone::Value& root, std::optional<int> tile) {
  if (!root) return false;
  for (NodeId n : nodes_below(std::span(&root, 1))) {
    const hone::Value v(&root.graph(), n);
    if (v.is(ops::tile_element) && (!tile || v.attrs().integer("index") == *tile)) return true;
  }
  return false;
}

enum class Touch : std::uint8_t { none, fill, read };

// How a block first accesses a tile.
Touch first_touch(const Block& block, int tile) {
  for (const Stmt& s : block) {
    if (mentions_tile(s.value, tile) || mentions_tile(s.condition, tile)) return Touch::read;
    if (s.tile == tile) return fills(s) ? Touch::fill : Touch::read;
    const Touch then = first_touch(s.body, tile), otherwise = first_touch(s.otherwise, tile);
    if (then == Touch::read || otherwise == Touch::read) return Touch::read;
    if (s.kind == Kind::loop && then == Touch::fill) return Touch::fill;
    if (then == Touch::fill && otherwise == Touch::fill) return Touch::fill;
  }
  return Touch::none;
}

bool changes(const Block& block, int tile) {
  return std::ranges::any_of(block, [&](const Stmt& s) {
    return (s.tile == tile && s.kind != Kind::tile_store) || changes(s.body, tile) ||
           changes(s.otherwise, tile);
  });
}

// Whether the tile has a value after the block; `has`: whether it has one before.
bool has_value_behind(const Block& block, int tile, bool has) {
  for (const Stmt& s : block) {
    if (s.tile == tile && fills(s)) has = true;
    if (s.kind == Kind::loop && first_touch(s.body, tile) == Touch::fill) has = false;
    if (s.kind == Kind::branch)
      has = has_value_behind(s.body, tile, has) && has_value_behind(s.otherwise, tile, has);
  }
  return has;
}

Value add_product(Value a, Value b, Value c) {
  return is_float(a.dtype()) ? fma(a, b, c) : a * b + c;
}

}  // namespace

bool reads_tiles(const Block& block) {
  bool found = false;
  for (const hone::Value& v : values_of(block)) found = found || mentions_tile(v, std::nullopt);
  return found;
}

RegId Renderer::tile_vector(int tile, int i) {
  HONE_ASSERT(i < most_vectors, "a tile of ", i, " vectors");
  return first_of_tiles + tile * most_vectors + i;
}

Renderer::TileForm Renderer::tile_form(int tile) const {
  const KernelTile& t = kernel_.tiles.at(static_cast<std::size_t>(tile));
  TileForm form{t.dtype, t.rows, 0, m_.target().lanes(byte_size(t.dtype))};
  form.vectors = t.columns / form.lanes;
  HONE_ASSERT(form.vectors * form.lanes == t.columns, "a tile of ", t.columns, " columns for ",
              form.lanes, " lanes");
  return form;
}

// ---- through loops and branches

void Renderer::add_tiles_carried(const Block& body, std::vector<RegId>& list) const {
  for (int t = 0; t < std::ssize(kernel_.tiles); ++t)
    if (changes(body, t) && first_touch(body, t) == Touch::read) add_tile(t, list);
}

void Renderer::add_tiles_joined(const Stmt& branch, std::vector<RegId>& list) const {
  for (int t = 0; t < std::ssize(kernel_.tiles); ++t) {
    if (!changes(branch.body, t) && !changes(branch.otherwise, t)) continue;
    const bool has = registers_.contains(tile_vector(t, 0));
    if (has_value_behind(branch.body, t, has) && has_value_behind(branch.otherwise, t, has))
      add_tile(t, list);
  }
}

void Renderer::add_tile(int tile, std::vector<RegId>& list) const {
  const TileForm form = tile_form(tile);
  for (int i = 0; i < form.rows * form.vectors; ++i) list.push_back(tile_vector(tile, i));
}

// A tile filled in a loop's body has no value after the loop.
void Renderer::forget_tiles_filled(const Block& body) {
  for (int t = 0; t < std::ssize(kernel_.tiles); ++t) {
    if (!changes(body, t) || first_touch(body, t) != Touch::fill) continue;
    std::vector<RegId> list;
    add_tile(t, list);
    for (RegId r : list) registers_.erase(r);
  }
}

// ---- statements

Renderer::Columns Renderer::columns_of(const TileForm& form, const Dim& columns) {
  Columns out;
  const std::optional<std::int64_t> number = columns.as_number();
  std::optional<Value> count;
  if (!number) count = position(columns);
  for (int v = 0; v < form.vectors; ++v) {
    const std::int64_t first = std::int64_t{v} * form.lanes;
    if (number && *number <= first) break;
    if (number && *number >= first + form.lanes)
      out.push_back(std::nullopt);
    else if (number)
      out.push_back(m_.tail_mask(m_.index(*number - first), form.lanes));
    else
      out.push_back(m_.tail_mask(maximum(*count - first, m_.index(0)), form.lanes));
  }
  return out;
}

Pointer Renderer::window(const TileWindow& w) {
  return offset(buffer(w.param), buffer_dtype(w.param), position(w.offset));
}

void Renderer::tile_fill(const Stmt& s) {
  const TileForm form = tile_form(s.tile);
  Value v = broadcast(cast(value(s.value), form.dtype), form.lanes);
  for (int i = 0; i < form.rows * form.vectors; ++i)
    registers_.insert_or_assign(tile_vector(s.tile, i), v);
  forget_registers();
}

void Renderer::tile_load(const Stmt& s) {
  const TileForm form = tile_form(s.tile);
  HONE_ASSERT(s.a.stride == Dim(1), "columns of a tile in steps of ", s.a.stride);
  const Columns columns = columns_of(form, s.columns);
  const DType dtype = buffer_dtype(s.a.param);
  const Pointer from = window(s.a);
  for (int r = 0; r < form.rows; ++r)
    for (int v = 0; v < form.vectors; ++v) {
      const auto at = static_cast<std::size_t>(v);
      Value x = m_.zero(form.type());
      if (at < columns.size()) {
        Pointer p = offset(from, dtype, s.a.rows[static_cast<std::size_t>(r)] + v * form.lanes);
        x = cast(columns[at] ? load_masked(dtype, p, *columns[at]) : load(dtype, p, form.lanes),
                 form.dtype);
      }
      registers_.insert_or_assign(tile_vector(s.tile, r * form.vectors + v), x);
    }
  forget_registers();
}

void Renderer::tile_store(const Stmt& s) {
  const TileForm form = tile_form(s.tile);
  HONE_ASSERT(s.a.stride == Dim(1), "columns of a tile in steps of ", s.a.stride);
  const Columns columns = columns_of(form, s.columns);
  const DType dtype = buffer_dtype(s.a.param);
  const Pointer to = window(s.a);
  for (int r = 0; r < form.rows; ++r)
    for (std::size_t v = 0; v < columns.size(); ++v) {
      const int i = static_cast<int>(v);
      Pointer p = offset(to, dtype, s.a.rows[static_cast<std::size_t>(r)] + i * form.lanes);
      Value x = cast(registers_.at(tile_vector(s.tile, r * form.vectors + i)), dtype);
      columns[v] ? store_masked(dtype, p, x, *columns[v]) : hone::llvm::store(dtype, p, x);
    }
  forget_memory();
}

// Not unrolled over k: LLVM would share elements of A between steps of neighbouring rows, and
// spill. If A has columns, sharing is intended: each element serves several rows.
void Renderer::tile_multiply(const Stmt& s) {
  constexpr std::int64_t most_written_out = 32;
  HONE_ASSERT(s.k_group == 1, "k in groups of ", s.k_group, " is not rendered");
  const TileForm form = tile_form(s.tile);
  const Columns columns = columns_of(form, s.columns);
  const DType a_type = buffer_dtype(s.a.param), b_type = buffer_dtype(s.b.param);
  const Pointer a = window(s.a), b = window(s.b);
  const Value a_stride = position(s.a.stride), b_stride = position(s.b.stride);
  const int vectors = static_cast<int>(columns.size());
  std::vector<RegId> list;
  for (int r = 0; r < form.rows; ++r)
    for (int v = 0; v < vectors; ++v) list.push_back(tile_vector(s.tile, r * form.vectors + v));
  auto vector_at = [&](DType dtype, Pointer p, int v) {
    const std::optional<Value>& mask = columns[static_cast<std::size_t>(v)];
    p = offset(p, dtype, std::int64_t{v} * form.lanes);
    return cast(mask ? load_masked(dtype, p, *mask) : load(dtype, p, form.lanes), form.dtype);
  };
  auto step = [&](Value k, Values sums) {
    const Pointer a_k = offset(a, a_type, s.a.stride == Dim(1) ? k : k * a_stride);
    const Pointer b_k = offset(b, b_type, k * b_stride);
    Values of_b;
    for (int v = 0; v < vectors; ++v) of_b.push_back(vector_at(b_type, b_k, v));
    for (int r = 0; r < form.rows; ++r) {
      const Pointer row = offset(a_k, a_type, s.a.rows[static_cast<std::size_t>(r)]);
      Value x;
      if (!s.a_has_columns) x = broadcast(cast(load(a_type, row), form.dtype), form.lanes);
      for (int v = 0; v < vectors; ++v) {
        Value& sum = sums[static_cast<std::size_t>(r * vectors + v)];
        const Value y = s.a_has_columns ? vector_at(a_type, row, v) : x;
        sum = add_product(y, of_b[static_cast<std::size_t>(v)], sum);
      }
    }
    return sums;
  };
  Values sums = registers(list);
  const std::optional<std::int64_t> number = s.extent.as_number();
  if (s.a_has_columns && number && *number <= most_written_out)
    for (std::int64_t k = 0; k < *number; ++k) sums = step(m_.index(k), std::move(sums));
  else
    sums = m_.loop(m_.index(0), position(s.extent), 1, std::move(sums), step);
  set_registers(list, sums);
}

// ---- elements

std::optional<std::int64_t> Renderer::number_at(const Dim& d) {
  if (d.is_number()) return d.number();
  const Value v = position(d);
  if (!LLVMIsAConstantInt(v.ref)) return std::nullopt;
  return LLVMConstIntGetSExtValue(v.ref);
}

Value Renderer::tile_element(const Expression& e) {
  const int tile = static_cast<int>(e.attrs().integer("index"));
  const TileForm form = tile_form(tile);
  const Dims& at = e.attrs().dims("offset");
  const std::optional<std::int64_t> row = number_at(at[0]), column = number_at(at[1]);
  HONE_ASSERT(row && column, "element ", at[0], ", ", at[1], " of a tile is not known");
  const int v = static_cast<int>(*column) / form.lanes,
            lane = static_cast<int>(*column) % form.lanes;
  const Value all = registers_.at(tile_vector(tile, static_cast<int>(*row) * form.vectors + v));
  if (!mentions_lane(at[1])) return extract(all, lane);
  HONE_ASSERT(lane == 0 && lane_stride(at[1]) == Dim(1) && lanes_.count == form.lanes,
              "elements of a tile from column ", *column, " on");
  return all;
}

// Unrolled, one vector after the other.
void Renderer::tile_lanes_loop(const Stmt& s) {
  hoist(s);
  TileForm form;
  std::vector<hone::Value> roots = values_of(s.body);
  for (NodeId n : nodes_below(roots))
    if (hone::Value v(&roots[0].graph(), n); v.is(ops::tile_element))
      form = tile_form(static_cast<int>(v.attrs().integer("index")));
  const Columns columns = columns_of(form, s.extent);
  for (std::size_t v = 0; v < columns.size(); ++v) {
    set_lanes({s.var, form.lanes, columns[v]});
    body_of_loop(s, m_.index(static_cast<std::int64_t>(v) * form.lanes));
    set_lanes({});
    forget_registers();
    forget_memory();
  }
}

}  // namespace hone::llvm
