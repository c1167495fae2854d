// The part of Renderer for machines whose threads run in groups. A group computes one iteration of
// the grid, or several if there are fewer groups than iterations. Tiles are per-thread arrays,
// accessed by loops that compilers unroll.
#include <bit>

#include "codegen/c/expression.h"
#include "kernel/groups/read_weights.h"
#include "kernel/groups/tensor_writer.h"
#include "kernel/nest/own_maximum.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone::c {

bool is_variable(const KernelMemory& m) {
  constexpr std::int64_t most_bytes = 1024;
  return m.scope == MemoryScope::group ||
         (m.elements.is_number() && m.elements.number() * byte_size(m.dtype) <= most_bytes);
}

// Writes a statement that the threads execute together; false for other statements.
bool Renderer::group_statement(const Stmt& s) {
  switch (s.kind) {
    case Stmt::Kind::loop:
      if (s.loop == LoopKind::group) return group_loop(s), true;
      if (s.loop == LoopKind::grid && has_grid(kernel_)) return grid_loop(s), true;
      if (s.loop != LoopKind::grid) return false;
      // In order: each iteration uses the results of the previous one.
      serial_loop(s);
      return barrier(), true;
    case Stmt::Kind::barrier:
      return barrier(s.extent.number()), true;
    case Stmt::Kind::end_batch:
      if (!dialect_.end_batch.empty()) out_.line(dialect_.end_batch);
      return true;
    case Stmt::Kind::wait_copies:
      if (!dialect_.wait_copies.empty()) {
        out_.line(filled(dialect_.wait_copies, {{"$N", cat(s.extent.number())}}));
        forget_memory();
      }
      return true;
    case Stmt::Kind::reduce_group:
      return reduce_group(s), true;
    case Stmt::Kind::copy_async:
      return copy_async(s), true;
    case Stmt::Kind::tile_fill:
      if (uses_matrices_) return fill_matrices(s), true;
      [[fallthrough]];
    case Stmt::Kind::tile_load:
    case Stmt::Kind::tile_store:
      return array_tile(s), true;
    case Stmt::Kind::tile_multiply:
      return array_multiply(s), true;
    case Stmt::Kind::intrinsic:
      return intrinsic(s), true;
    default:
      return false;
  }
}

void Renderer::intrinsic(const Stmt& s) {
  if (s.name == hone::multiply_halves && dialect_.multiplies_halves) return multiply_halves(s);
  if (s.name == hone::multiply_held_halves && dialect_.multiplies_halves)
    return multiply_held_halves(s);
  if (s.name == hone::multiply_matrices && uses_matrices_) return multiply_matrices(s);
  if (s.name == hone::store_matrices && uses_matrices_) return store_matrices(s);
  if (s.name == hone::load_matrices && uses_matrices_) return load_matrices(s);
  if (s.name == hone::hold_matrices && uses_matrices_) return hold_matrices(s);
  if (s.name == hone::join_exponentials && !dialect_.join_exponentials.empty())
    return join_exponentials(s);
  has_short_powers_ = s.name == hone::short_powers && helpers_.has("short_power_f32");
  block(s.body);
  has_short_powers_ = false;
}

void Renderer::join_exponentials(const Stmt& s) {
  const Stmt &maximum = s.body.at(1), &sum = s.body.back();
  out_.line(filled(dialect_.join_exponentials,
                   {{"$M", registers_.at(maximum.reg)},
                    {"$S", registers_.at(sum.reg)},
                    {"$N", cat(group_threads(kernel_))},
                    {"$E", combined(helpers_, ops::maximum, DType::f32, "a", "b")},
                    {"$X", cat(helpers_.use("exp_f32"), "(a)")}}));
  forget_registers();
}

void Renderer::barrier(std::int64_t neighbours) {
  HONE_ASSERT(neighbours == 1 || (uses_matrices_ && neighbours == 32), kernel_.name,
              ": a barrier of ", neighbours, " neighbours");
  out_.line(!uses_matrices_   ? dialect_.barrier
            : neighbours == 1 ? dialect_.matrices->barrier
                              : dialect_.matrices->subgroup_barrier);
  forget_memory();
}

void Renderer::grid_loop(const Stmt& s) {
  const std::string chunk = fresh("chunk");
  out_.open("for (", index_type(), " ", chunk, " = (", index_type(), ")", dialect_.group, "; ",
            chunk, " < ", position(kernel_.chunks), "; ", chunk, " += (", index_type(), ")",
            dialect_.groups, ")");
  variables_[s.var] = chunk;
  scoped([&] { block(s.body); });
  bool meets = false;
  for_each_statement(s.body, [&](const Stmt& each) {
    meets = meets || each.kind == Stmt::Kind::barrier ||
            (each.kind == Stmt::Kind::reduce_group && !dialect_.reductions_meet);
  });
  if (meets) barrier();  // the next iteration writes what this one reads
  out_.close();
  forget_memory();
  forget_registers();
}

void Renderer::group_loop(const Stmt& s) {
  const std::string thread = fresh("thread");
  out_.open();
  out_.line("const ", index_type(), " ", thread, " = (", index_type(), ")", dialect_.thread, ";");
  variables_[s.var] = thread;
  group_thread_ = s.var;
  scoped([&] {
    const std::size_t first = independent_statements(kernel_, s.body);
    for (std::size_t i = 0; i < first; ++i) statement(s.body[i]);
    if (!dialect_.behind_weights.empty()) out_.line(dialect_.behind_weights);
    for (std::size_t i = first; i < s.body.size(); ++i) statement(s.body[i]);
  });
  out_.close();
}

// Combines halves until one part is left, so that the order depends only on the extent.
void Renderer::reduce_group(const Stmt& s) {
  const DType t = register_dtype(s.value.dtype());
  const int threads = group_threads(kernel_);
  const std::string parts = cat("parts_", t),
                    array = cat(register_type(t), " ", parts, "[", threads, "]"),
                    thread = cat("(int32_t)", dialect_.thread), h = fresh("h"), me = fresh("me");
  const auto use_parts = [&] {
    if (std::ranges::find(shared_, array) == shared_.end()) shared_.push_back(array);
  };
  const std::int64_t neighbours = s.extent.number();
  const std::string joined =
      dialect_.join_subgroup ? dialect_.join_subgroup(*s.combine, t) : std::string();
  if (neighbours > 1 && neighbours == dialect_.subgroup && !joined.empty()) {
    uses_subgroups_ = true;
    const std::string x = value(s.value);
    out_.line("{ const ", register_type(t), " own = ", x, "; ", registers_.at(s.reg), " = ", joined,
              "; }");
    return forget_registers();
  }
  if (neighbours > 1 && !dialect_.reduce_neighbours.empty()) {
    uses_subgroups_ = uses_subgroups_ || dialect_.join_subgroup;
    const std::string x = value(s.value);
    out_.line(
        filled(dialect_.reduce_neighbours, {{"$R", registers_.at(s.reg)},
                                            {"$X", x},
                                            {"$T", std::string(register_type(t))},
                                            {"$N", cat(neighbours)},
                                            {"$E", combined(helpers_, *s.combine, t, "a", "b")}}));
    return forget_registers();
  }
  if (neighbours == 1 && !dialect_.reduce_group.empty() &&
      (!dialect_.join_subgroup || !joined.empty()) &&
      std::has_single_bit(static_cast<unsigned>(threads))) {
    if (dialect_.join_subgroup) use_parts();
    uses_subgroups_ = uses_subgroups_ || dialect_.join_subgroup;
    const std::string x = value(s.value);
    out_.line(filled(dialect_.reduce_group, {{"$R", registers_.at(s.reg)},
                                             {"$X", x},
                                             {"$A", parts},
                                             {"$S", joined},
                                             {"$0", neutral(*s.combine, t)},
                                             {"$T", std::string(register_type(t))},
                                             {"$N", cat(threads)},
                                             {"$E", combined(helpers_, *s.combine, t, "a", "b")}}));
    return forget_registers();
  }
  use_parts();
  const std::string x = value(s.value);
  out_.open();
  out_.line("const int32_t ", me, " = ", thread, ";");
  const std::string mine = cat(parts, "[", me, "]"), other = cat(parts, "[", me, " + ", h, "]");
  out_.line(mine, " = ", x, ";");
  out_.line(dialect_.barrier);
  const std::int64_t joining = neighbours > 1 ? neighbours : threads;
  const std::string place = neighbours > 1 ? cat(me, " % ", neighbours) : me;
  if (joining > 1) {
    const auto half = std::bit_ceil(static_cast<std::uint64_t>(joining)) / 2;
    out_.open("for (int32_t ", h, " = ", half, "; ", h, " > 0; ", h, " /= 2)");
    out_.line("if (", place, " < ", h, " && ", place, " + ", h, " < ", joining, ") ", mine, " = ",
              combined(helpers_, *s.combine, t, mine, other), ";");
    out_.line(dialect_.barrier);
    out_.close();
  }
  const std::string first = neighbours > 1 ? cat(me, " - ", place) : "0";
  out_.line(registers_.at(s.reg), " = ", parts, "[", first, "];");
  out_.line(dialect_.barrier);
  out_.close();
  forget_registers();
}

// Whether one access can copy all lanes: source and destination are aligned to it.
bool Renderer::copies_vector(const Stmt& s, const Dim& from) {
  constexpr std::int64_t bytes = 16;
  const DType t = buffer_dtype(s.param);
  return !dialect_.copy_async.empty() && s.a.stride == Dim(1) &&
         (is_shared(s.param) || is_spread(s.param)) && !is_array(s.a.param) &&
         s.extent * Dim(byte_size(t)) == Dim(bytes) && mod(s.offset, s.extent) == Dim(0) &&
         mod(from, s.extent) == Dim(0) && use_vector(s.a.param, s.extent.number());
}

void Renderer::copy_async(const Stmt& s) {
  const std::string i = fresh("i");
  const Dim from = s.a.offset + Dim(s.a.rows.empty() ? 0 : s.a.rows[0]);
  const std::string condition = s.condition ? value(s.condition) : std::string();
  if (copies_vector(s, from)) {
    const std::string at = position(s.offset);
    out_.line(filled(dialect_.copy_async,
                     {{"$T", cat(buffer(s.param), " + (",
                                 is_spread(s.param) ? spread_place(s.param, at) : at, ")")},
                      {"$F", cat(buffer(s.a.param), " + (", position(from), ")")},
                      {"$N", cat(s.extent.number())},
                      {"$G", is_spread(s.param) ? "false" : "true"},
                      {"$C", condition.empty() ? "true" : condition}}));
    return forget_memory();
  }
  const std::string to = element_at(s.param, cat(position(s.offset), " + ", i));
  const auto each = [&](const std::string& what) {
    out_.line("for (", index_type(), " ", i, " = 0; ", i, " < ", position(s.extent), "; ++", i,
              ") ", to, " = ", what, ";");
  };
  if (!condition.empty()) out_.open("if (", condition, ")");
  each(element_at(s.a.param, cat(position(from), " + ", i, " * ", factor(s.a.stride))));
  if (!condition.empty()) {
    out_.close();
    out_.open("else");
    each("0");
    out_.close();
  }
  forget_memory();
}

// ---- tiles

// The tiles of which iteration i of a serial loop reads only row i. Registers cannot be indexed by
// a variable, and unrolling would repeat the body for each row. So the body reads row 0, and
// turn_tile() then rotates the rows by one. After the loop the tile is unchanged.
std::vector<int> Renderer::tiles_by_rows(const Stmt& loop) const {
  if (!dialect_.has_groups || loop.loop != LoopKind::serial) return {};
  std::set<int> own, others;
  for (const Value& root : values_of(loop.body))
    for (NodeId n : nodes_below(std::span(&root, 1))) {
      const Value v(&root.graph(), n);
      if (!v.is(ops::tile_element)) continue;
      const int tile = static_cast<int>(v.attrs().integer("index"));
      const std::int64_t rows = kernel_.tiles[static_cast<std::size_t>(tile)].rows;
      const bool is_own = loop_of(v.attrs().dims("offset")[0]) == loop.var;
      (is_own && rows > 1 && loop.extent == Dim(rows) ? own : others).insert(tile);
    }
  std::vector<int> out;
  std::ranges::set_difference(own, others, std::back_inserter(out));
  return out;
}

void Renderer::turn_tile(int tile) {
  const KernelTile& t = kernel_.tiles[static_cast<std::size_t>(tile)];
  const std::string l = fresh("l"), first = fresh("first");
  const auto each = [&](std::int64_t count, const std::string& statement) {
    out_.line(dialect_.unroll);
    out_.line("for (int32_t ", l, " = 0; ", l, " < ", count, "; ++", l, ") ", statement);
  };
  const std::int64_t behind = (t.rows - 1) * t.columns;
  out_.line(memory_type(t.dtype), " ", first, "[", t.columns, "];");
  each(t.columns, cat(first, "[", l, "] = t", tile, "[", l, "];"));
  each(behind, cat("t", tile, "[", l, "] = t", tile, "[", l, " + ", t.columns, "];"));
  each(t.columns, cat("t", tile, "[", l, " + ", behind, "] = ", first, "[", l, "];"));
}

void Renderer::array_tile(const Stmt& s) {
  const KernelTile& t = kernel_.tiles[static_cast<std::size_t>(s.tile)];
  used_tiles_.insert(s.tile);
  const std::string l = fresh("l");
  auto each_column = [&] {
    out_.line(dialect_.unroll);
    out_.open("for (int32_t ", l, " = 0; ", l, " < ", t.columns, "; ++", l, ")");
  };
  if (s.kind == Stmt::Kind::tile_fill) {
    const std::string x = value(s.value);
    out_.line(dialect_.unroll);
    out_.line("for (int32_t ", l, " = 0; ", l, " < ", t.rows * t.columns, "; ++", l, ") t", s.tile,
              "[", l, "] = ", narrowed(t.dtype, x), ";");
    return forget_registers();
  }
  const bool is_load = s.kind == Stmt::Kind::tile_load, is_whole = s.columns == Dim(t.columns);
  const DType dtype = buffer_dtype(s.a.param);
  const std::string offset = position(s.a.offset), stride = factor(s.a.stride),
                    columns = is_whole ? "" : factor(s.columns);
  each_column();
  if (!is_whole && !is_load) out_.open("if (", l, " < ", columns, ")");
  for (int r = 0; r < t.rows; ++r) {
    const std::string mine = cat("t", s.tile, "[", r * t.columns, " + ", l, "]"),
                      theirs =
                          element_at(s.a.param, cat(offset, " + ",
                                                    index(s.a.rows[static_cast<std::size_t>(r)]),
                                                    " + ", l, " * ", stride));
    if (!is_load) {
      out_.line(theirs, " = ", to_memory(dtype, cast_number(t.dtype, register_dtype(dtype), mine)),
                ";");
      continue;
    }
    if (!is_whole) {
      out_.line(mine, " = ", zero_of(t.dtype), ";");
    }
    out_.line(is_whole ? "" : cat("if (", l, " < ", columns, ") "), mine, " = ",
              cast_number(register_dtype(dtype), t.dtype, from_memory(dtype, theirs)), ";");
  }
  if (!is_whole && !is_load) out_.close();
  out_.close();
  is_load ? forget_registers() : forget_memory();
}

std::string Renderer::zero_of(DType t) const {
  return is_float(t) ? literal(0.0, t) : narrowed(t, literal(std::int64_t{0}, t));
}

void Renderer::array_multiply(const Stmt& s) {
  const KernelTile& t = kernel_.tiles[static_cast<std::size_t>(s.tile)];
  used_tiles_.insert(s.tile);
  const std::string_view type = memory_type(t.dtype);
  const bool is_whole = s.columns == Dim(t.columns);
  const std::string columns = is_whole ? "" : factor(s.columns), k = fresh("k"), l = fresh("l"),
                    b = fresh("b"), x = fresh("x"), a_offset = position(s.a.offset),
                    b_offset = position(s.b.offset), a_stride = factor(s.a.stride),
                    b_stride = factor(s.b.stride);
  auto element = [&](int param, const std::string& at) {
    const DType dtype = buffer_dtype(param);
    return cast_number(register_dtype(dtype), t.dtype, from_memory(dtype, element_at(param, at)));
  };
  auto each_column = [&] {
    out_.line(dialect_.unroll);
    out_.open("for (int32_t ", l, " = 0; ", l, " < ", t.columns, "; ++", l, ")");
  };
  // Neighbouring steps read neighbouring elements, which shader compilers recognize in unrolled
  // iterations.
  constexpr std::int64_t most_written_out = 512;
  const std::int64_t products = std::int64_t{t.rows} * t.columns;
  if (products > dialect_.most_products_to_unroll)
    out_.line(dialect_.keep_loop);
  else if (s.extent.is_number() && s.extent.number() * products <= most_written_out)
    out_.line(dialect_.unroll);
  out_.open("for (", index_type(), " ", k, " = 0; ", k, " < ", position(s.extent), "; ++", k, ")");
  out_.line(type, " ", b, "[", t.columns, "], ", x, ";");
  const std::string place = s.k_group == 1 ? cat(k, " * ", b_stride, " + ", l)
                                           : cat(k, " / ", s.k_group, " * ", b_stride, " + ", l,
                                                 " * ", s.k_group, " + ", k, " % ", s.k_group);
  each_column();
  if (!is_whole) out_.line(b, "[", l, "] = ", zero_of(t.dtype), ";");
  out_.line(is_whole ? "" : cat("if (", l, " < ", columns, ") "), b, "[", l,
            "] = ", element(s.b.param, cat(b_offset, " + ", place)), ";");
  out_.close();
  for (int r = 0; r < t.rows; ++r) {
    const std::string at = cat(a_offset, " + ", index(s.a.rows[static_cast<std::size_t>(r)]), " + ",
                               k, " * ", a_stride);
    const std::string mine = cat("t", s.tile, "[", r * t.columns, " + ", l, "]");
    if (!s.a_has_columns) out_.line(x, " = ", element(s.a.param, at), ";");
    each_column();
    if (!is_whole) out_.open("if (", l, " < ", columns, ")");
    if (s.a_has_columns) out_.line(x, " = ", element(s.a.param, cat(at, " + ", l)), ";");
    const std::string factor_of_b = cat(b, "[", l, "]");
    if (is_float(t.dtype)) {
      out_.line(mine, " = ", helpers_.use(cat("fma_", t.dtype)), "(", x, ", ", factor_of_b, ", ",
                mine, ");");
    } else {
      const std::string_view u = wrapping_type(t.dtype);
      out_.line(mine, " = (", type, ")((", u, ")", mine, " + (", u, ")", x, " * (", u, ")",
                factor_of_b, ");");
    }
    if (!is_whole) out_.close();
    out_.close();
  }
  out_.close();
  forget_registers();
}

// ---- declarations before the statements

// Bytes of the group's shared memory; spread memory starts after them.
std::int64_t Renderer::shared_of_group() const {
  Dim end = 0;
  for (const KernelMemory& m : kernel_.memory)
    if (m.scope == MemoryScope::group)
      end = max(end, m.offset + ceil_div(m.elements * Dim(byte_size(m.dtype)), 64) * Dim(64));
  return end.number();
}

void Renderer::declare_group(Text& out) {
  for (std::size_t i = 0; i < kernel_.sizes.size(); ++i) {
    out.line("const ", index_type(), " size", i, " = (", index_type(), ")",
             filled(dialect_.size, {{"$I", cat(i)}}), ";");
  }
  for (std::size_t t = 0; t < kernel_.tiles.size(); ++t)
    if (used_tiles_.contains(static_cast<int>(t)) && !uses_matrices_)
      out.line(memory_type(kernel_.tiles[t].dtype), " t", t, "[",
               kernel_.tiles[t].rows * kernel_.tiles[t].columns, "];");
  if (uses_matrices_) declare_matrices(out);
  for (std::size_t i = 0; i < kernel_.memory.size(); ++i) {
    const KernelMemory& m = kernel_.memory[i];
    const std::size_t param = kernel_.params.size() + i;
    if (!used_params_.contains(static_cast<int>(param))) continue;
    if (in_words_.contains(static_cast<int>(param))) {
      if (m.scope == MemoryScope::thread)
        out.line(dialect_.matrices->word, " p", param, "[",
                 m.elements.number() / word_elements(static_cast<int>(param)), "];");
      continue;
    }
    const std::string_view type = memory_type(m.dtype);
    if (m.scope == MemoryScope::spread && !dialect_.block_thread.empty()) {
      const std::int64_t first = shared_of_group() + m.offset.number() * block_threads();
      out.line(filled(dialect_.shared,
                      {{"$T", std::string(type)}, {"$P", cat("p", param)}, {"$O", cat(first)}}));
      const Dim bytes = m.elements * Dim(byte_size(m.dtype));
      shared_bytes_ = std::max(shared_bytes_, first + bytes.number() * block_threads());
      continue;
    }
    if (!is_variable(m)) {
      out.line(filled(dialect_.scratch, {{"$T", std::string(type)},
                                         {"$P", cat("p", param)},
                                         {"$O", cat("(", position(m.offset), ")")}}));
      continue;
    }
    if (m.scope == MemoryScope::group && !dialect_.shared.empty()) {
      out.line(filled(
          dialect_.shared,
          {{"$T", std::string(type)}, {"$P", cat("p", param)}, {"$O", cat(m.offset.number())}}));
      shared_bytes_ =
          std::max(shared_bytes_, (m.offset + m.elements * Dim(byte_size(m.dtype))).number());
      continue;
    }
    const std::string array =
        cat(type, " p", param, "[", std::max<std::int64_t>(m.elements.number(), 1), "]");
    if (m.scope == MemoryScope::group)
      shared_.push_back(array);
    else
      out.line(array, ";");
  }
}

}  // namespace hone::c
