// Statements and control flow as the interpreter's instructions.
#include <bit>

#include "kernel/interpret/compiler.h"
#include "kernel/interpret/control.h"
#include "kernel/nest/lower.h"

namespace hone::interpreter {

Compiler::Compiler(Program& p) : p_(p), kernel_(p.kernel) {
  choose_lanes();
  scopes_.emplace_back();
  for (const Dim& s : kernel_.sizes) {
    p_.sizes.push_back(allocate(Cell::i64, false));
    sizes_[s.name()] = p_.sizes.back();
  }
  one_ = number(1);
  p_.lanes_of_tiles = lanes_ == Lanes::group ? static_cast<int>(p_.width) : 1;
  for (const KernelTile& t : kernel_.tiles) {
    const Cell cell = cell_of(t.dtype);
    const Slot slot = reserve(byte_size(cell) * t.rows * t.columns * p_.lanes_of_tiles);
    p_.tiles.push_back({slot, cell, t.rows, t.columns});
  }
  block(kernel_.body);
  p_.code = std::move(scopes_[0].body);
  p_.code.push_back({.run = control::end});
}

void Compiler::outer_lanes(const Block& block, std::vector<const Stmt*>& out) {
  for (const Stmt& s : block) {
    if (s.kind == StmtKind::loop && s.loop == LoopKind::lanes) {
      out.push_back(&s);
    } else {
      outer_lanes(s.body, out);
      outer_lanes(s.otherwise, out);
    }
  }
}

void Compiler::choose_lanes() {
  const Block& body = kernel_.body;
  for_each_statement(body, [&](const Stmt& s) {
    if (s.kind != StmtKind::loop) return;
    if (s.loop == LoopKind::grid) ++p_.grids;
    if (s.loop != LoopKind::group) return;
    lanes_ = Lanes::group;
    if (p_.threads != 0 && s.extent != Dim(p_.threads))
      refuse("its groups have different numbers of threads");
    p_.threads = p_.width = s.extent.number();
  });
  if (lanes_ == Lanes::group) return;
  std::vector<const Stmt*> loops;
  outer_lanes(body, loops);
  constexpr std::int64_t enough = 8;
  std::int64_t widest = 1;
  for (const Stmt* s : loops) widest = std::max(widest, std::min(most_lanes, s->extent.high()));
  const bool keeps_nothing = kernel_.tiles.empty() && kernel_.memory.empty() && p_.grids == 1;
  if (widest >= enough || (!loops.empty() && !keeps_nothing)) {
    lanes_ = Lanes::loops;
    p_.width = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(widest)));
  } else if (keeps_nothing && !changes_outside_of_grid(body)) {
    lanes_ = Lanes::grid;
    p_.width = most_lanes;
    p_.grid_in_lanes = true;
  }
}

bool Compiler::changes_outside_of_grid(const Block& body) {
  for (const Stmt& s : body)
    if (s.kind == StmtKind::loop && s.loop == LoopKind::grid)
      return !modified_outside(s.body).empty();
  return true;
}

std::vector<RegId> Compiler::modified_outside(const Block& block) {
  std::unordered_set<RegId> own;
  for_each_statement(block, [&](const Stmt& s) {
    if (s.kind == StmtKind::declare) own.insert(s.reg);
  });
  std::vector<RegId> out;
  for (RegId r : Changes(block).registers)
    if (!own.contains(r)) out.push_back(r);
  std::ranges::sort(out);
  return out;
}

void Compiler::block(const Block& b) {
  for (const Stmt& s : b) {
    p_.statements.push_back(&s);
    statement_ = static_cast<std::int32_t>(p_.statements.size() - 1);
    statement(s);
  }
}

void Compiler::statement(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::loop:
      return loop(s);
    case StmtKind::declare:
      return declare(s);
    case StmtKind::assign:
      return assign(s, value(s.value));
    case StmtKind::accumulate:
      return accumulate(s);
    case StmtKind::store:
      return store(s);
    case StmtKind::branch:
      return branch(s);
    case StmtKind::fetch:
      return;
    case StmtKind::intrinsic:
      return block(s.body);
    case StmtKind::barrier:
      return barrier(s);
    case StmtKind::reduce_group:
      return reduce_group(s);
    default:
      return tile_statement(s);
  }
}

void Compiler::barrier(const Stmt& s) {
  if (s.extent == Dim(1)) {
    meet("barrier");
    emit({.run = control::barrier});
  } else {
    if (!in_group()) refuse("a barrier outside of a group of threads");
    const std::int64_t neighbours = s.extent.number();
    if (p_.width % neighbours != 0 || (p_.neighbours != 1 && p_.neighbours != neighbours))
      refuse("a barrier of ", neighbours, " neighbours in a group of ", p_.width,
             p_.neighbours == 1 ? "" : cat(", after one of ", p_.neighbours));
    p_.neighbours = static_cast<std::int32_t>(neighbours);
    emit({.run = control::near_barrier});
  }
  forget_memory();
}

void Compiler::meet(std::string_view what) {
  if (!in_group()) refuse("a ", what, " outside of a group of threads");
  emit({.run = control::meet});
}

void Compiler::declare(const Stmt& s) {
  const Val x = value(s.value);
  Val r{allocate(x.cell, in_vector()), in_vector(), x.cell};
  if (r.wide && !x.wide)
    emit({.run = broadcast_run(x.cell), .to = r.slot, .a = x.slot});
  else
    emit({.run = copy_run(x.cell), .wide = r.wide, .to = r.slot, .a = x.slot});
  registers_[s.reg] = r;
  forget_register(s.reg);
}

const Compiler::Val& Compiler::changed_register(const Stmt& s) {
  auto it = registers_.find(s.reg);
  if (it == registers_.end()) refuse("register ", s.reg, " is changed and was never declared");
  if (in_vector() && !it->second.wide)
    refuse("register ", s.reg, " of the outside is changed in a loop whose iterations run at once");
  if (s.value && cell_of(s.value.dtype()) != it->second.cell)
    refuse("register ", s.reg, " is given a value of another dtype");
  return it->second;
}

void Compiler::assign(const Stmt& s, const Val& x) {
  const Val r = changed_register(s);
  emit({.run = masks_ > 0 ? copy_masked_run(r.cell) : copy_run(r.cell),
        .wide = r.wide,
        .to = r.slot,
        .a = operand(x, r.wide)});
  forget_register(s.reg);
}

void Compiler::accumulate(const Stmt& s) {
  const Val x = value(s.value), r = changed_register(s);
  const Slot to = masks_ > 0 ? allocate(r.cell, r.wide) : r.slot;
  emit({.run = binary_run(*s.combine, r.cell),
        .wide = r.wide,
        .to = to,
        .a = r.slot,
        .b = operand(x, r.wide)});
  if (masks_ > 0) emit({.run = copy_masked_run(r.cell), .wide = true, .to = r.slot, .a = to});
  forget_register(s.reg);
}

void Compiler::reduce_group(const Stmt& s) {
  meet("reduction over a group");
  const Val x = value(s.value), r = changed_register(s);
  const Run run = reduce_group_run(*s.combine, r.cell);
  if (!run) refuse("groups do not reduce by ", s.combine->name);
  if (p_.width % s.extent.number() != 0)
    refuse("a reduction over ", s.extent, " neighbours in a group of ", p_.width);
  emit({.run = run,
        .wide = true,
        .to = r.slot,
        .a = widen(x),
        .detail = static_cast<std::uint32_t>(s.extent.number())});
  forget_register(s.reg);
}

void Compiler::open(const Stmt& s, const Block& body, VarId var, bool is_branch) {
  Scope scope;
  scope.var = var;
  scope.is_branch = is_branch;
  scope.may_not_run = !is_branch && s.extent.low() <= 0;
  scope.changes = Changes(body);
  if (!is_branch) forget_changes(scope.changes);
  scopes_.push_back(std::move(scope));
}

std::vector<Instr> Compiler::close() {
  forget_level(level());
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  forget_changes(scope.changes);
  append(scope.before);
  return std::move(scope.body);
}

void Compiler::append(const std::vector<Instr>& code) {
  std::vector<Instr>& to = scopes_.back().body;
  to.insert(to.end(), code.begin(), code.end());
}

void Compiler::branch(const Stmt& s) {
  const Val c = value(s.condition);
  const std::int32_t here = statement_;
  const bool masked = c.wide;
  auto part = [&](const Block& body) {
    open(s, body, -1, true);
    block(body);
    return close();
  };
  masks_ += masked;
  const std::vector<Instr> then = part(s.body), otherwise = part(s.otherwise);
  masks_ -= masked;
  statement_ = here;
  const auto skip = static_cast<std::int32_t>(then.size()),
             rest = static_cast<std::int32_t>(otherwise.size());
  if (masked) {
    const Slot mask = allocate(Cell::b1, true), copy = allocate(Cell::b1, true);
    emit({.run = control::mask_if, .wide = true, .to = mask, .a = c.slot, .b = copy, .jump = skip});
    append(then);
    emit({.run = control::mask_else, .wide = true, .to = mask, .b = copy, .jump = rest});
    append(otherwise);
    emit({.run = control::mask_end});
  } else {
    emit({.run = control::skip_unless, .a = c.slot, .jump = skip + 1});
    append(then);
    emit({.run = control::skip, .jump = rest});
    append(otherwise);
  }
}

bool Compiler::makes_lanes(const Stmt& s) const {
  if (in_vector()) return false;
  return (lanes_ == Lanes::group && s.loop == LoopKind::group) ||
         (lanes_ == Lanes::loops && s.loop == LoopKind::lanes) ||
         (lanes_ == Lanes::grid && s.loop == LoopKind::grid);
}

void Compiler::loop(const Stmt& s) {
  if (s.loop == LoopKind::group && in_vector()) refuse("a group inside of a group");
  if (s.loop == LoopKind::grid && level() > 0) refuse("a grid loop is not the outermost");
  if (makes_lanes(s)) return lanes_loop(s);
  const std::int32_t here = statement_;
  const Place extent = position(s.extent);
  const bool masked = extent.kind != Place::Kind::same;
  const Slot limit = masked ? listed(s.extent) : extent.base;
  const Slot var = allocate(Cell::i64, false), mask = masked ? allocate(Cell::b1, true) : no_slot;
  variables_[s.var] = {Place::Kind::same, var};
  masks_ += masked;
  open(s, s.body, s.var, false);
  block(s.body);
  const std::vector<Instr> body = close();
  masks_ -= masked;
  variables_.erase(s.var);
  statement_ = here;
  const bool is_grid = s.loop == LoopKind::grid;
  const Run begin = is_grid  ? control::grid_begin
                    : masked ? control::masked_begin
                             : control::loop_begin,
            next = is_grid  ? control::grid_next
                   : masked ? control::masked_next
                            : control::loop_next;
  const auto size = static_cast<std::int32_t>(body.size()) + 1;
  emit({.run = begin, .wide = masked, .to = var, .a = limit, .b = mask, .jump = size});
  append(body);
  emit({.run = next, .wide = masked, .to = var, .a = limit, .b = mask, .jump = size});
}

std::vector<Compiler::Part> Compiler::open_parts(const Stmt& s) {
  std::vector<Part> parts;
  if (lanes_ != Lanes::loops) return parts;
  for (RegId r : modified_outside(s.body)) {
    auto it = registers_.find(r);
    if (it == registers_.end()) refuse("register ", r, " is changed and was never declared");
    Part part{r, nullptr, it->second, it->second};
    for_each_statement(s.body, [&](const Stmt& inner) {
      if (inner.kind == StmtKind::loop || inner.reg != r) return;
      if (inner.kind != StmtKind::accumulate || (part.combine && part.combine != inner.combine))
        refuse("register ", r, " of the outside is assigned in a lanes loop");
      part.combine = inner.combine;
    });
    part.lanes.slot = allocate(part.outside.cell, true);
    part.lanes.wide = true;
    const DType t = register_dtypes_.at(static_cast<int>(part.outside.cell));
    const Array start = neutral(*part.combine, t);
    const bool real = is_float(t);
    const Slot first =
        constant_slot(part.outside.cell, real ? 0 : start.integer(0), real ? start.real(0) : 0);
    emit({.run = broadcast_run(part.outside.cell), .to = part.lanes.slot, .a = first});
    parts.push_back(part);
  }
  return parts;
}

Array Compiler::neutral(const Op& op, DType t) {
  if (&op == &ops::bit_xor) return Array::scalar_int(0, t);
  return start_of(op, t);
}

void Compiler::lanes_loop(const Stmt& s) {
  const std::int32_t here = statement_;
  const Slot limit = position(s.extent).base, base = allocate(Cell::i64, false);
  const std::vector<Part> parts = open_parts(s);
  variables_[s.var] = {Place::Kind::steps, base, one_};
  vector_level_ = level() + 1;
  open(s, s.body, s.var, false);
  for (const Part& part : parts) {
    registers_[part.reg] = part.lanes;
    forget_register(part.reg);
  }
  block(s.body);
  const std::vector<Instr> body = close();
  vector_level_ = 0;
  variables_.erase(s.var);
  statement_ = here;
  const bool is_grid = lanes_ == Lanes::grid, is_group = lanes_ == Lanes::group;
  const Run begin = is_grid    ? control::grid_strip_begin
                    : is_group ? control::group_begin
                               : control::strip_begin,
            next = is_grid    ? control::grid_strip_next
                   : is_group ? control::group_end
                              : control::strip_next;
  const auto size = static_cast<std::int32_t>(body.size()) + 1;
  emit({.run = begin, .to = base, .a = limit, .jump = size});
  append(body);
  emit({.run = next, .to = base, .a = limit, .jump = size});
  for (const Part& part : parts) {
    registers_[part.reg] = part.outside;
    emit({.run = join_lanes_run(*part.combine, part.outside.cell),
          .to = part.outside.slot,
          .a = part.lanes.slot});
    forget_register(part.reg);
  }
}

Compiler::Val Compiler::tile_value(Value v, const Needs& n, int& at) {
  const Tile& t = tile(static_cast<int>(v.attrs().integer("index")));
  const Dims& where = v.attrs().dims("offset");
  Access a{static_cast<int>(v.attrs().integer("index")),
           position(where.at(0) * Dim(t.columns) + where.at(1))};
  const bool wide = in_group() || (in_vector() && a.place.kind != Place::Kind::same);
  at = level_of(n, wide);
  const Val out{allocate(t.cell, wide), wide, t.cell};
  p_.accesses.push_back(a);
  emit({.run = tile_element,
        .wide = wide,
        .to = out.slot,
        .detail = static_cast<std::uint32_t>(p_.accesses.size() - 1)},
       at);
  if (cell_of(v.dtype()) != t.cell) return converted(out, v.dtype(), at);
  return out;
}

const Tile& Compiler::tile(int i) const {
  if (i < 0 || i >= static_cast<int>(p_.tiles.size()))
    refuse(unknown_number("tile", "t", i, p_.tiles.size()));
  return p_.tiles[static_cast<std::size_t>(i)];
}

Window Compiler::window(const TileWindow& w) {
  buffer_dtype(w.param);
  return {w.param, position(w.offset), position(w.stride), w.rows};
}

void Compiler::tile_statement(const Stmt& s) {
  if (in_vector() && !in_group()) refuse("tiles in a loop whose iterations run at once");
  TileWork work;
  Instr i{.wide = in_group(), .kind = static_cast<std::uint8_t>(s.kind)};
  const bool is_copying = s.kind == StmtKind::copy_async || s.kind == StmtKind::end_batch ||
                          s.kind == StmtKind::wait_copies;
  if (is_copying) {
    if (!in_group()) refuse("an asynchronous copy outside of a group of threads");
    i.run = s.kind == StmtKind::copy_async  ? copy_async
            : s.kind == StmtKind::end_batch ? end_batch
                                            : wait_copies;
    if (s.kind == StmtKind::copy_async) {
      if (s.condition) i.a = operand(value(s.condition), i.wide);
      work.a = window(s.a);
      work.b = {s.param, position(s.offset), position(1), {0}};
      if (buffer_dtype(s.param) != buffer_dtype(s.a.param))
        refuse("an asynchronous copy between different dtypes");
    }
  } else {
    work.tile = s.tile;
    const Tile& t = tile(s.tile);
    work.columns = position(s.columns);
    if (s.kind == StmtKind::tile_fill) {
      const Val x = value(s.value);
      if (x.cell != t.cell) refuse("t", s.tile, " is filled with a value of another dtype");
      i.a = operand(x, i.wide);
      i.run = tile_fill;
    } else {
      work.a = window(s.a);
      if (static_cast<int>(s.a.rows.size()) != t.rows)
        refuse("t", s.tile, " has ", t.rows, " rows, its window ", s.a.rows.size());
      i.run = s.kind == StmtKind::tile_load ? tile_load : tile_store;
    }
    if (s.kind == StmtKind::tile_multiply) {
      i.run = tile_multiply;
      work.b = window(s.b);
      work.a_has_columns = s.a_has_columns, work.k_group = s.k_group;
    }
  }
  work.extent = position(s.extent);
  p_.tile_works.push_back(std::move(work));
  i.detail = static_cast<std::uint32_t>(p_.tile_works.size() - 1);
  emit(i);
  forget_tiles();
  if (s.kind == StmtKind::tile_store || is_copying) forget_memory();
}

void compile(Program& p) { Compiler compiler(p); }

}  // namespace hone::interpreter
