// Expressions, accesses and positions as the interpreter's instructions.
#include "kernel/interpret/compiler.h"

namespace hone::interpreter {

Slot Compiler::reserve(std::int64_t bytes) {
  const auto at = static_cast<Slot>(p_.frame_bytes);
  p_.frame_bytes += static_cast<std::size_t>((bytes + 63) / 64 * 64);
  if (p_.frame_bytes > (std::size_t{1} << 30)) refuse("takes too much memory to interpret");
  return at;
}

int Compiler::level_of(const Needs& n, bool wide) const {
  int at = level();
  while (at > 0 && may_leave(scopes_[static_cast<std::size_t>(at)], n)) --at;
  return wide ? std::max(at, vector_level_) : at;
}

bool Compiler::may_leave(const Scope& s, const Needs& n) {
  if (n.tiles || s.changes.touch(n)) return false;
  if (n.loads && (s.is_branch || s.may_not_run)) return false;
  return !n.loops.contains(s.var);
}

const Needs& Compiler::needs_of(Value v) {
  if (auto it = needs_.find(v.node()); it != needs_.end()) return it->second;
  Needs n;
  if (v.is(ops::load)) {
    const auto p = static_cast<std::size_t>(v.attrs().integer("param"));
    n.loads = true;
    n.written = p >= kernel_.params.size() || kernel_.params[p].written;
    n.add(v.attrs().dims("offset").at(0));
  } else if (v.is(ops::tile_element)) {
    n.tiles = true;
    for (const Dim& d : v.attrs().dims("offset")) n.add(d);
  } else if (v.is(ops::dims)) {
    n.add(v.attrs().dims("dims").at(0));
  } else if (v.is(ops::reg)) {
    n.registers.insert(static_cast<RegId>(v.attrs().integer("index")));
  }
  for (std::size_t i = 0; i < v.operand_count(); ++i) n.add(needs_of(v.operand(i)));
  return needs_.emplace(v.node(), std::move(n)).first->second;
}

Slot Compiler::constant_slot(Cell cell, std::int64_t integer, double real) {
  const Slot slot = allocate(cell, false);
  p_.constants.push_back({slot, cell, integer, real});
  return slot;
}

Slot Compiler::number(std::int64_t n) {
  auto [it, fresh] = numbers_.try_emplace(n, no_slot);
  if (fresh) it->second = constant_slot(Cell::i64, n, 0);
  return it->second;
}

Compiler::Val Compiler::value(Value v) {
  if (v.is(ops::reg)) return register_value(v);
  if (auto it = known_.find(v.node()); it != known_.end()) return it->second.value;
  if (v.is(ops::constant)) {
    const Array a = in_registers(v.attrs().get<Array>("value"));
    const Cell cell = cell_of(a.dtype());
    const bool real = is_float(a.dtype());
    const Slot slot = constant_slot(cell, real ? 0 : a.integer(0), real ? a.real(0) : 0);
    return remember(v, {slot, false, cell, v.node()}, 0);
  }
  const Needs& n = needs_of(v);
  Val out;
  int at = 0;
  if (v.is(ops::load))
    out = load(v, n, at);
  else if (v.is(ops::tile_element))
    out = tile_value(v, n, at);
  else if (v.is(ops::dims))
    out = dims(v, n, at);
  else
    out = operation(v, n, at);
  out.node = v.node();
  return remember(v, out, at);
}

Compiler::Val Compiler::remember(Value v, const Val& x, int at) {
  known_[v.node()] = {x, no_slot, at};
  return x;
}

Compiler::Val Compiler::register_value(Value v) {
  const auto r = static_cast<RegId>(v.attrs().integer("index"));
  auto it = registers_.find(r);
  if (it == registers_.end()) refuse("register ", r, " is read and was never declared");
  const Val& x = it->second;
  if (x.cell != cell_of(v.dtype())) refuse("register ", r, " is not ", v.dtype());
  return x;
}

Slot Compiler::widen(const Val& x) {
  if (x.wide || !in_vector()) return x.slot;
  auto it = known_.find(x.node);
  if (it != known_.end() && it->second.broadcast != no_slot) return it->second.broadcast;
  const Slot slot = allocate(x.cell, true);
  const int at = it == known_.end() ? level() : it->second.level;
  emit({.run = broadcast_run(x.cell), .to = slot, .a = x.slot}, at);
  if (it != known_.end()) it->second.broadcast = slot;
  return slot;
}

Compiler::Val Compiler::operation(Value v, const Needs& n, int& at) {
  std::vector<Val> in;
  bool wide = false;
  for (Value operand : v.operands()) {
    in.push_back(value(operand));
    wide = wide || in.back().wide;
  }
  at = level_of(n, wide);
  if (v.is(ops::cast)) return cast(v, in[0], at);
  const Cell from = in.at(0).cell;
  Instr i{.wide = wide};
  if (v.is(ops::bitcast))
    i.run = bitcast_run(registers_as(v.operand(0).dtype()), registers_as(v.dtype()));
  else if (v.is(ops::select))
    i.run = select_run(in.at(1).cell);
  else if (v.is(ops::replay))
    i.run = copy_run(from);
  else if (in.size() == 1)
    i.run = unary_run(v.op(), from);
  else if (in.size() == 2)
    i.run = binary_run(v.op(), from);
  if (!i.run) refuse("operation '", v.op().name, "' is not interpreted");
  i.a = operand(in[0], wide);
  if (in.size() > 1) i.b = operand(in[1], wide);
  if (in.size() > 2) i.c = operand(in[2], wide);
  if (v.op().real) {
    i.detail = static_cast<std::uint32_t>(p_.functions.size());
    p_.functions.push_back(v.op().real);
  }
  const Cell to = cell_of(v.dtype());
  i.to = allocate(to, wide);
  emit(i, at);
  return {i.to, wide, to};
}

Compiler::Val Compiler::unary(Run run, const Val& x, Cell to, int at) {
  const Val out{allocate(to, x.wide), x.wide, to};
  emit({.run = run, .wide = x.wide, .to = out.slot, .a = x.slot}, at);
  return out;
}

Compiler::Val Compiler::cast(Value v, Val x, int at) {
  const Value from = v.operand(0);
  const bool is_exact = from.is(ops::load) || from.is(ops::cast) || from.is(ops::constant);
  if (is_narrow(from.dtype()) && !is_exact) x = unary(round_run(from.dtype()), x, Cell::f32, at);
  return converted(x, v.dtype(), at);
}

Compiler::Val Compiler::converted(Val x, DType to, int at) {
  if (!is_narrow(to)) return unary(cast_run(x.cell, cell_of(to)), x, cell_of(to), at);
  if (x.cell == Cell::f32) return unary(round_run(to), x, Cell::f32, at);
  if (x.cell != Cell::f64) x = unary(cast_run(x.cell, Cell::f64), x, Cell::f64, at);
  return unary(round_double_run(to), x, Cell::f32, at);
}

Compiler::Val Compiler::dims(Value v, const Needs& n, int& at) {
  const Dim& d = v.attrs().dims("dims").at(0);
  const bool wide = position(d).kind != Place::Kind::same;
  const Val x{wide ? listed(d) : position(d).base, wide, Cell::i64};
  at = level_of(n, wide);
  return converted(x, v.dtype(), at);
}

DType Compiler::buffer_dtype(int p) const {
  const auto i = static_cast<std::size_t>(p);
  if (i < kernel_.params.size()) return kernel_.params[i].dtype;
  const std::size_t count = kernel_.params.size() + kernel_.memory.size();
  if (i >= count) refuse(unknown_number("parameter", "p", p, count));
  return kernel_.memory[i - kernel_.params.size()].dtype;
}

bool Compiler::is_shared(int p) const {
  const auto i = static_cast<std::size_t>(p);
  return i >= kernel_.params.size() || kernel_.params[i].written;
}

Compiler::Val Compiler::load(Value v, const Needs& n, int& at) {
  Access a;
  a.buffer = static_cast<int>(v.attrs().integer("param"));
  const DType t = buffer_dtype(a.buffer);
  a.place = position(v.attrs().dims("offset").at(0));
  if (v.operand_count() > 0) {
    const Val c = value(v.operand(0));
    a.condition = c.slot, a.wide_condition = c.wide;
  }
  const bool wide = in_vector() && (a.place.kind != Place::Kind::same || a.wide_condition ||
                                    (tells_lanes_apart() && is_shared(a.buffer)));
  at = level_of(n, wide);
  const Val out{allocate(cell_of(t), wide), wide, cell_of(t)};
  p_.accesses.push_back(a);
  emit({.run = load_run(t),
        .wide = wide,
        .to = out.slot,
        .detail = static_cast<std::uint32_t>(p_.accesses.size() - 1)},
       at);
  return out;
}

void Compiler::store(const Stmt& s) {
  const DType t = buffer_dtype(s.param);
  const auto p = static_cast<std::size_t>(s.param);
  if (p < kernel_.params.size() && !kernel_.params[p].written)
    refuse("p", s.param, " is stored to and not marked as written");
  const Val x = value(s.value);
  if (x.cell != cell_of(t)) refuse("p", s.param, " holds ", t, ", what is stored does not");
  Access a{s.param, position(s.offset)};
  if (s.condition) {
    const Val c = value(s.condition);
    a.condition = c.slot, a.wide_condition = c.wide;
  }
  const bool wide =
      tells_lanes_apart() ||
      (in_vector() && (a.place.kind != Place::Kind::same || x.wide || a.wide_condition));
  p_.accesses.push_back(a);
  emit({.run = store_run(t),
        .wide = wide,
        .a = operand(x, wide),
        .detail = static_cast<std::uint32_t>(p_.accesses.size() - 1)});
  forget_memory();
}

Place Compiler::position(const Dim& d) {
  if (d.is_number()) return {Place::Kind::same, number(d.number())};
  if (d.is_symbol()) return symbol(d);
  for (const KnownPosition& k : positions_[d.hash()])
    if (k.dim == d) return k.place;
  KnownPosition k{.dim = d};
  k.needs.add(d);
  k.place = d.expr()->kind == DimExpr::Kind::sum ? sum(d, k) : called(d, k);
  const Place place = k.place;
  positions_[d.hash()].push_back(std::move(k));
  return place;
}

Place Compiler::symbol(const Dim& d) {
  if (auto v = loop_of(d)) {
    auto it = variables_.find(*v);
    if (it == variables_.end()) refuse(d, " is used outside of its loop");
    return it->second;
  }
  if (auto r = register_of(d)) {
    auto it = registers_.find(*r);
    if (it == registers_.end()) refuse("register ", *r, " is read and was never declared");
    if (it->second.cell != Cell::i64) refuse("register ", *r, " is a position and not i64");
    return {it->second.wide ? Place::Kind::list : Place::Kind::same, it->second.slot};
  }
  auto it = sizes_.find(d.name());
  if (it == sizes_.end()) refuse("size ", d, " is not among the kernel's sizes");
  return {Place::Kind::same, it->second};
}

Slot Compiler::listed(const Dim& d) {
  const Place p = position(d);
  if (p.kind == Place::Kind::list) return p.base;
  KnownPosition* known = nullptr;
  for (KnownPosition& k : positions_[d.hash()])
    if (k.dim == d) known = &k;
  if (known && known->list != no_slot) return known->list;
  Needs n;
  n.add(d);
  const int at = std::max(level_of(n, true), 0);
  const Slot to = allocate(Cell::i64, true);
  if (p.kind == Place::Kind::same)
    emit({.run = broadcast_run(Cell::i64), .to = to, .a = p.base}, at);
  else
    emit({.run = spread, .wide = true, .to = to, .a = p.base, .b = p.step}, at);
  if (known) known->list = to, known->list_level = at;
  return to;
}

Slot Compiler::linear_slot(Linear sum, int at) {
  if (sum.terms.empty()) return number(sum.constant);
  if (sum.constant == 0 && sum.terms.size() == 1 && sum.terms[0].factor == 1 &&
      sum.terms[0].slots.size() == 1)
    return sum.terms[0].slots[0];
  const Slot to = allocate(Cell::i64, false);
  p_.sums.push_back(std::move(sum));
  emit({.run = linear, .to = to, .detail = static_cast<std::uint32_t>(p_.sums.size() - 1)}, at);
  return to;
}

Place Compiler::sum(const Dim& d, KnownPosition& k) {
  Linear base, step;
  std::vector<const DimExpr::Term*> lists;
  for (const DimExpr::Term& t : d.expr()->terms) {
    std::vector<Slot> slots;
    std::optional<Place> moving;
    bool is_list = false;
    for (const Dim& atom : t.atoms) {
      const Place p = position(atom);
      if (p.kind == Place::Kind::same) {
        slots.push_back(p.base);
      } else {
        is_list = is_list || moving || p.kind == Place::Kind::list;
        moving = p;
      }
    }
    if (is_list) {
      lists.push_back(&t);
    } else if (t.atoms.empty()) {
      base.constant += t.factor;
    } else if (moving) {
      step.terms.push_back({t.factor, slots});
      step.terms.back().slots.push_back(moving->step);
      slots.push_back(moving->base);
      base.terms.push_back({t.factor, std::move(slots)});
    } else {
      base.terms.push_back({t.factor, std::move(slots)});
    }
  }
  const bool moves = !step.terms.empty();
  k.level = level_of(k.needs, !lists.empty());
  const Slot base_slot = linear_slot(std::move(base), k.level);
  const Slot step_slot = moves ? linear_slot(std::move(step), k.level) : number(0);
  if (lists.empty()) return {moves ? Place::Kind::steps : Place::Kind::same, base_slot, step_slot};
  Slot total = allocate(Cell::i64, true);
  emit({.run = spread, .wide = true, .to = total, .a = base_slot, .b = step_slot}, k.level);
  for (const DimExpr::Term* t : lists) {
    Slot product = listed(t->atoms[0]);
    for (std::size_t i = 1; i < t->atoms.size(); ++i)
      product = wide_i64(ops::mul, product, listed(t->atoms[i]), k.level);
    if (t->factor != 1) product = wide_i64(ops::mul, product, listed(t->factor), k.level);
    total = wide_i64(ops::add, total, product, k.level);
  }
  return {Place::Kind::list, total};
}

Slot Compiler::wide_i64(const Op& op, Slot a, Slot b, int at) {
  const Slot to = allocate(Cell::i64, true);
  emit({.run = binary_run(op, Cell::i64), .wide = true, .to = to, .a = a, .b = b}, at);
  return to;
}

Place Compiler::called(const Dim& d, KnownPosition& k) {
  const DimExpr& e = *d.expr();
  const bool wide =
      position(e.a).kind != Place::Kind::same || position(e.b).kind != Place::Kind::same;
  const Slot a = wide ? listed(e.a) : position(e.a).base,
             b = wide ? listed(e.b) : position(e.b).base;
  k.level = level_of(k.needs, wide);
  const Slot to = allocate(Cell::i64, wide);
  emit({.run = position_run(e.kind), .wide = wide, .to = to, .a = a, .b = b}, k.level);
  return {wide ? Place::Kind::list : Place::Kind::same, to};
}

const Needs& Compiler::needs_of_node(NodeId n) {
  static const Needs none;
  auto it = needs_.find(n);
  return it == needs_.end() ? none : it->second;
}

void Compiler::forget_changes(const Changes& c) {
  forget_if([&](const Needs& n, int) { return c.touch(n); });
}

void Compiler::forget_register(RegId r) {
  forget_if([&](const Needs& n, int) { return n.registers.contains(r); });
}

void Compiler::forget_memory() {
  forget_if([&](const Needs& n, int) { return n.written; });
}

void Compiler::forget_tiles() {
  forget_if([&](const Needs& n, int) { return n.tiles; });
}

void Compiler::forget_level(int at) {
  forget_if([&](const Needs&, int level) { return level >= at; });
}

}  // namespace hone::interpreter
