#include "codegen/llvm/nest.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "base/error.h"
#include "codegen/llvm/expression.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone::llvm {

namespace {

// A loop of at most this many iterations is unrolled.
constexpr std::int64_t most_unrolled = 4;

void collect(const Block& block, const std::function<void(const Stmt&)>& f) {
  for (const Stmt& s : block) {
    f(s);
    collect(s.body, f);
    collect(s.otherwise, f);
  }
}

// Nodes in a loop whose value varies between iterations, operands before users.
std::vector<hone::Value> varying_values(const Stmt& loop) {
  Dims symbols = {loop_symbol(loop.var, loop.extent)};
  std::unordered_set<RegId> changed;
  collect(loop.body, [&](const Stmt& s) {
    if (s.kind == Stmt::Kind::loop) symbols.push_back(loop_symbol(s.var, s.extent));
    if (s.kind != Stmt::Kind::store && s.reg >= 0) changed.insert(s.reg);
  });
  auto varies = [&](const Dim& d) {
    for (const Dim& s : d.symbols()) {
      if (std::optional<RegId> r = register_of(s); r && changed.contains(*r)) return true;
      for (const Dim& inner : symbols)
        if (inner == s) return true;
    }
    return false;
  };
  std::vector<hone::Value> out, roots = values_of(loop.body);
  std::unordered_set<NodeId> found;
  for (NodeId n : nodes_below(roots)) {
    hone::Value v(&roots[0].graph(), n);
    const Attrs& attrs = v.attrs();
    bool is = (v.is(ops::load) && varies(attrs.dims("offset").at(0))) ||
              (v.is(ops::dims) && varies(attrs.dims("dims").at(0))) ||
              (v.is(ops::reg) && changed.contains(static_cast<RegId>(attrs.integer("index"))));
    for (std::size_t i = 0; i < v.operand_count(); ++i)
      is = is || found.contains(v.operand(i).node());
    if (!is) continue;
    found.insert(n);
    out.push_back(v);
  }
  return out;
}

// Whether it is or comes from an 8-byte element.
bool is_wide_number(const hone::Value& v, const Kernel& kernel) {
  if (!v.is(ops::load)) return !v.is(ops::dims) && byte_size(v.dtype()) == 8;
  auto p = static_cast<std::size_t>(v.attrs().integer("param"));
  return byte_size(p < kernel.params.size() ? kernel.params[p].dtype
                                            : kernel.memory[p - kernel.params.size()].dtype) == 8;
}

// A tile multiplication is a loop, and too much code to unroll.
bool multiplies_tiles(const Block& block) {
  bool found = false;
  collect(block, [&](const Stmt& s) { found = found || s.kind == Stmt::Kind::tile_multiply; });
  return found;
}

bool contains_loop(const Block& block) {
  bool found = false;
  collect(block, [&](const Stmt& s) { found = found || s.kind == Stmt::Kind::loop; });
  return found;
}

// Float maximum and minimum reductions ignore NaN and record in separate masks which lanes saw
// none: half an instruction instead of two.
bool has_memory_of_nan(const Op& op, DType dtype) {
  return is_float(dtype) && (&op == &ops::maximum || &op == &ops::minimum);
}
// Several masks, each with a register's lanes, so that none waits for another.
constexpr int most_memories = 4;
RegId memory_of_nan(RegId extreme, int i) { return -1 - (extreme * most_memories + i); }
RegId extreme_of(RegId memory) { return (-1 - memory) / most_memories; }
bool is_memory(RegId r) { return r < 0; }

// The extreme of two numbers; the second if one is NaN.
Value extreme_of_numbers(const Op& op, Value a, Value b) {
  return select(&op == &ops::maximum ? greater(a, b) : less(a, b), a, b);
}

std::int64_t power_of_two_from(std::int64_t n) {
  std::int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

}  // namespace

std::int64_t known_divisor(const Dim& d) {
  if (d.is_number()) return std::abs(d.number());
  using Kind = DimExpr::Kind;
  const DimExpr& e = *d.expr();
  if (e.kind == Kind::min || e.kind == Kind::max || e.kind == Kind::mod)
    return std::gcd(known_divisor(e.a), known_divisor(e.b));
  if (e.kind != Kind::sum) return 1;
  std::int64_t all = 0;
  for (const DimExpr::Term& t : e.terms) all = std::gcd(all, t.factor);
  return all;
}

void Renderer::block(const Block& block) {
  for (const Stmt& s : block) switch (s.kind) {
      case Stmt::Kind::loop:
        loop(s);
        break;
      case Stmt::Kind::declare:
        // A register reduced later differs between lanes.
        registers_.insert_or_assign(
            s.reg, joined_.contains(s.reg) ? widened(value(s.value)) : value(s.value));
        forget_registers();
        break;
      case Stmt::Kind::assign:
        HONE_ASSERT(registers_.contains(s.reg), "register ", s.reg, " is assigned, not declared");
        registers_.insert_or_assign(s.reg, value(s.value));
        forget_registers();
        break;
      case Stmt::Kind::accumulate:
        accumulate(s);
        break;
      case Stmt::Kind::store:
        store(s);
        break;
      case Stmt::Kind::branch:
        branch(s);
        break;
      case Stmt::Kind::fetch:
        fetch(s);
        break;
      case Stmt::Kind::tile_fill:
        tile_fill(s);
        break;
      case Stmt::Kind::tile_load:
        tile_load(s);
        break;
      case Stmt::Kind::tile_store:
        tile_store(s);
        break;
      case Stmt::Kind::tile_multiply:
        tile_multiply(s);
        break;
      default:
        throw UserError("kernel '", kernel_.name, "': the LLVM renderer has no groups of threads");
    }
}

void Renderer::note_joined(const Block& block) {
  collect(block, [&](const Stmt& s) {
    if (s.kind == Stmt::Kind::accumulate || s.kind == Stmt::Kind::assign) joined_.insert(s.reg);
  });
}

void Renderer::forget_registers() {
  std::erase_if(cache_, [&](const auto& entry) { return reads_.at(entry.first).registers; });
}

void Renderer::forget_memory() {
  std::erase_if(cache_, [&](const auto& entry) { return reads_.at(entry.first).written; });
}

void Renderer::accumulate(const Stmt& s) {
  Value& total = registers_.at(s.reg);
  Value v = value(s.value);
  if (total.lanes() > 1) {
    v = widened(v);
    if (lanes_.mask) v = select(*lanes_.mask, v, neutral(m_, *s.combine, v.type));
  }
  HONE_ASSERT(v.lanes() <= total.lanes(), "a vector is added to one number");
  if (auto memory = registers_.find(memory_of_nan(s.reg, 0)); memory != registers_.end()) {
    const int lanes = memory->second.lanes();
    for (int i = 0, k = 0; i < v.lanes(); i += 2 * lanes, ++k) {  // one comparison for two vectors
      Value first = slice_lanes(v, i, lanes);
      Value second = i + lanes < v.lanes() ? slice_lanes(v, i + lanes, lanes) : first;
      if (auto next = registers_.find(memory_of_nan(s.reg, k)); next != registers_.end())
        memory = next;
      memory->second = memory->second & ~unordered(first, second);
    }
    total = extreme_of_numbers(*s.combine, v, total);
  } else {
    total = combine(*s.combine, total, v);
  }
  forget_registers();
}

std::vector<RegId> Renderer::modified_outside(const Block& block) const {
  std::vector<RegId> out;
  std::unordered_set<RegId> own;
  collect(block, [&](const Stmt& s) {
    if (s.kind == Stmt::Kind::declare) own.insert(s.reg);
  });
  collect(block, [&](const Stmt& s) {
    bool modifies = s.kind == Stmt::Kind::assign || s.kind == Stmt::Kind::accumulate;
    if (!modifies || own.contains(s.reg)) return;
    if (std::find(out.begin(), out.end(), s.reg) != out.end()) return;
    out.push_back(s.reg);
    for (int i = 0; i < most_memories; ++i)
      if (RegId m = memory_of_nan(s.reg, i); registers_.contains(m)) out.push_back(m);
  });
  return out;
}

Values Renderer::registers(const std::vector<RegId>& list) {
  Values out;
  for (RegId r : list) out.push_back(registers_.at(r));
  return out;
}

void Renderer::set_registers(const std::vector<RegId>& list, const Values& values) {
  for (std::size_t i = 0; i < list.size(); ++i) registers_.insert_or_assign(list[i], values[i]);
  forget_registers();
}

void Renderer::branch(const Stmt& s) {
  Value condition = value(s.condition);
  HONE_ASSERT(condition.lanes() == 1, "a branch differs between lanes");
  std::vector<RegId> modified = modified_outside(s.body);
  for (RegId r : modified_outside(s.otherwise))
    if (std::find(modified.begin(), modified.end(), r) == modified.end()) modified.push_back(r);
  add_tiles_joined(s, modified);
  const auto cache = cache_;
  const auto before = registers_;
  auto side = [&](const Block& body) {
    cache_ = cache;
    registers_ = before;
    block(body);
    return registers(modified);
  };
  Values after =
      m_.if_values(condition, [&] { return side(s.body); }, [&] { return side(s.otherwise); });
  cache_ = cache;
  registers_ = before;
  forget_memory();
  set_registers(modified, after);
}

void Renderer::loop(const Stmt& s) {
  if (s.loop == LoopKind::grid && kernel_.body.size() == 1) return chunk_loop(s);
  if (s.loop == LoopKind::lanes) return reads_tiles(s.body) ? tile_lanes_loop(s) : lanes_loop(s);
  if (s.loop == LoopKind::across) return across_loop(s);
  const bool unrolls =
      s.loop == LoopKind::unrolled ||
      (s.extent.is_number() && s.extent.number() <= most_unrolled && !multiplies_tiles(s.body));
  if (unrolls) return unrolled_loop(s, s.extent.number());
  serial_loop(s);
}

void Renderer::body_of_loop(const Stmt& s, Value at) {
  set_variable(s.var, at);
  auto cache = cache_;
  block(s.body);
  cache_ = std::move(cache);
}

void Renderer::chunk_loop(const Stmt& s) {
  hoist(s);
  if (std::optional<Stages> stages = stages_of(s)) return overlapped_rows(s, *stages);
  m_.loop(in_.begin, in_.end, 1, [&](Value at) { body_of_loop(s, at); });
  forget_memory();
}

void Renderer::unrolled_loop(const Stmt& s, std::int64_t count) {
  hoist(s);
  for (std::int64_t i = 0; i < count; ++i) {
    auto cache = cache_;
    set_variable(s.var, m_.index(i));
    block(s.body);
    cache_ = std::move(cache);
    forget_memory();
    forget_registers();
  }
}

void Renderer::serial_loop(const Stmt& s) {
  hoist(s);
  std::vector<RegId> modified = modified_outside(s.body);
  add_tiles_carried(s.body, modified);
  Value extent = position(s.extent);
  // Values read before must be read again inside: an earlier iteration may have changed them.
  if (!modified.empty()) forget_registers();
  forget_memory();
  Values after =
      m_.loop(m_.index(0), extent, 1, registers(modified), [&](Value at, const Values& carried) {
        set_registers(modified, carried);
        body_of_loop(s, at);
        return registers(modified);
      });
  forget_memory();
  set_registers(modified, after);
  forget_tiles_filled(s.body);
}

int Renderer::lanes_for(const Stmt& s) const {
  std::vector<hone::Value> values = varying_values(s);
  bool wide = std::any_of(values.begin(), values.end(),
                          [&](const hone::Value& v) { return is_wide_number(v, kernel_); });
  std::int64_t lanes = m_.target().vector_bits / (wide ? 64 : 32);
  if (auto n = s.extent.as_number())
    lanes = std::min(lanes, power_of_two_from(std::max<std::int64_t>(*n, 1)));
  return static_cast<int>(lanes);
}

namespace {

// Vectors per loop iteration: enough to hide the latency of reductions, and few for long bodies,
// whose iterations the processor overlaps itself.
int vectors_at_once(const Stmt& s, bool joins, const TargetSpec& target) {
  // Each iteration traverses memory in its own inner loop.
  if (contains_loop(s.body)) return joins ? 4 : target.vector_bits / 64;
  double weight = 0;
  for (const hone::Value& v : varying_values(s)) weight += v.op().cost;
  if (joins && weight <= 4) return 8;
  return weight <= 8 ? 4 : 2;
}

// Combines two parts of a reduction. Float extremes and their NaN masks do not check for NaN here.
Value joined(const Op& op, Value a, Value b) {
  return has_memory_of_nan(op, a.dtype()) ? extreme_of_numbers(op, a, b) : combine(op, a, b);
}

// Reduces a vector to `lanes` lanes, upper half onto lower half.
Value narrowed(Value v, int lanes, const Op& op) {
  while (v.lanes() > lanes) {
    const int half = v.lanes() / 2;
    v = joined(op, slice_lanes(v, 0, half), slice_lanes(v, half, half));
  }
  return v;
}

}  // namespace

std::vector<Renderer::Join> Renderer::joins_of(const Stmt& s) const {
  std::vector<Join> joins;
  for (RegId reg : modified_outside(s.body)) joins.push_back({reg, nullptr});
  collect(s.body, [&](const Stmt& inner) {
    if (inner.kind == Stmt::Kind::loop || inner.reg < 0) return;
    for (Join& j : joins)
      if (inner.reg == j.reg) {
        HONE_ASSERT(inner.kind == Stmt::Kind::accumulate, "register ", inner.reg,
                    " of the outside is assigned in a lanes loop");
        j.op = inner.combine;
      }
  });
  return joins;
}

// Adds the joins of NaN masks in a loop that processes `vectors` vectors at once.
void Renderer::add_memories(std::vector<Join>& joins, int vectors) const {
  const std::size_t count = joins.size();
  for (std::size_t i = 0; i < count; ++i)
    if (has_memory_of_nan(*joins[i].op, registers_.at(joins[i].reg).dtype()))
      for (int k = 0; k < std::clamp(vectors / 2, 1, most_memories); ++k)
        joins.push_back({memory_of_nan(joins[i].reg, k), &ops::bit_and});
}

// One vector of iterations, with the per-lane parts of reductions in `parts`.
Values Renderer::lanes_part(const Stmt& s, const Lanes& lanes, Value at,
                            const std::vector<Join>& joins, const Values& parts) {
  std::vector<std::optional<Value>> outside;
  for (std::size_t i = 0; i < joins.size(); ++i) {
    auto it = registers_.find(joins[i].reg);
    outside.push_back(it == registers_.end() ? std::nullopt : std::optional(it->second));
    registers_.insert_or_assign(joins[i].reg, parts[i]);
  }
  set_lanes(lanes);
  body_of_loop(s, at);
  Values out;
  for (std::size_t i = 0; i < joins.size(); ++i) {
    out.push_back(registers_.at(joins[i].reg));
    registers_.erase(joins[i].reg);
    if (outside[i]) registers_.insert_or_assign(joins[i].reg, *outside[i]);
  }
  set_lanes({});
  forget_registers();
  forget_memory();
  return out;
}

void Renderer::lanes_loop(const Stmt& s) {
  HONE_ASSERT(lanes_.count == 1, "a lanes loop inside a lanes loop");
  hoist(s);
  const int w = lanes_for(s);
  if (w == 1) return unrolled_loop(s, s.extent.number());
  std::vector<Join> joins = joins_of(s);
  std::optional<std::int64_t> number = s.extent.as_number();
  std::int64_t divisor = known_divisor(s.extent);
  int wide = w * vectors_at_once(s, !joins.empty(), m_.target());
  while (number && wide > w && *number < wide) wide /= 2;
  add_memories(joins, wide / w);
  Values parts;
  for (const Join& j : joins) {
    auto it = registers_.find(j.reg);
    ValueType type =
        it == registers_.end() ? ValueType{DType::b1, w} : ValueType{it->second.dtype(), wide};
    parts.push_back(neutral(m_, *j.op, type));
  }
  forget_memory();
  Value extent = position(s.extent), from = m_.index(0);
  // The order of a reduction must not depend on addresses.
  if (std::optional<Value> head = joins.empty() ? turns_before_line(s, w, extent) : std::nullopt) {
    m_.if_(greater(*head, m_.index(0)),
           [&] { lanes_part(s, {s.var, w, m_.tail_mask(*head, w)}, from, joins, parts); });
    from = *head;
    number.reset();
    divisor = 1;
  }
  auto vectors = [&](int lanes) {
    Value rest = number                 ? m_.index(*number % lanes)
                 : divisor % lanes == 0 ? m_.index(0)
                                        : modulo_index(extent - from, m_.index(lanes));
    Value end = extent - rest;
    auto run = [&] {
      return m_.loop(from, end, lanes, parts, [&](Value at, const Values& carried) {
        return lanes_part(s, {s.var, lanes, std::nullopt}, at, joins, carried);
      });
    };
    parts = lanes == wide ? past_caches_or_not(s, from, lanes, run) : run();
    from = end;
  };
  vectors(wide);
  for (std::size_t i = 0; i < joins.size(); ++i) parts[i] = narrowed(parts[i], w, *joins[i].op);
  if (wide > w && divisor % wide != 0 && (!number || *number % wide >= w)) vectors(w);
  if (divisor % w != 0) {
    Value remaining = extent - from;
    auto tail = [&] {
      return lanes_part(s, {s.var, w, m_.tail_mask(remaining, w)}, from, joins, parts);
    };
    parts = number ? tail()
                   : m_.if_values(greater(remaining, m_.index(0)), tail, [&] { return parts; });
  }
  finish_joins(joins, parts);
}

void Renderer::finish_joins(const std::vector<Join>& joins, const Values& parts) {
  for (std::size_t i = 0; i < joins.size(); ++i) {
    if (!is_memory(joins[i].reg)) {
      auto join = [&](Value a, Value b) { return joined(*joins[i].op, a, b); };
      Value& total = registers_.at(joins[i].reg);
      total = combine(*joins[i].op, total, reduce(parts[i], join));
      continue;
    }
    const RegId reg = extreme_of(joins[i].reg);
    Value clean = parts[i];
    for (; i + 1 < joins.size() && is_memory(joins[i + 1].reg); ++i) {
      if (extreme_of(joins[i + 1].reg) != reg) break;
      clean = clean & parts[i + 1];
    }
    Value& extreme = registers_.at(reg);
    extreme = select(all(clean), extreme, real_like(extreme, NAN));
  }
  forget_registers();
  forget_memory();
}

// ---- hoisting: loop-invariant values are computed before the loop

void Renderer::hoist(const Stmt& s) {
  if (s.extent.low() <= 0) return;  // the memory it reads may not exist
  Dims inner;
  auto add = [&](VarId var) { inner.push_back(loop_symbol(var, 1)); };
  add(s.var);
  collect(s.body, [&](const Stmt& each) {
    if (each.kind == Stmt::Kind::loop) add(each.var);
  });
  for_each_invariant(
      s.body, inner, reads_,
      [&](const Expression& e) { return e.is(ops::constant) || cache_.contains(e.node()); },
      [&](const Expression& e) { value(e); });
}

// ---- kernels

namespace {

void emit_body(Module& m, const Kernel& kernel, const KernelArguments& in) {
  const Block& body = kernel.body;
  check(kernel);
  Renderer renderer(m, kernel, in);
  renderer.note_joined(body);
  const bool is_grid = has_grid(kernel);
  renderer.begin_streams();
  if (is_grid)
    renderer.block(body);
  else
    m.if_(less(in.begin, in.end), [&] { renderer.block(body); });
  renderer.end_streams();
}

}  // namespace

void emit_kernel(Module& m, const Kernel& kernel, std::string_view name) {
  std::vector<Buffer> buffers;
  for (const KernelParam& p : kernel.params)
    // A result may share memory with an operand whose same element is read first.
    buffers.push_back({.is_read_only = !p.written, .restrict = false, .align = byte_size(p.dtype)});
  KernelArguments in = m.begin_kernel(name, buffers);
  emit_body(m, kernel, in);
  m.end_kernel();
}

}  // namespace hone::llvm
