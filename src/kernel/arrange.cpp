#include "kernel/arrange.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "kernel/memory_hints.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

bool is_loop(const Stmt& s) { return s.kind == Kind::loop; }
Dim symbol_of(const Stmt& loop) { return loop_symbol(loop.var, loop.extent); }
bool contains_loop(const Block& block) { return std::any_of(block.begin(), block.end(), is_loop); }

}  // namespace

// ---- order

namespace {

// Whether two turns of a loop may store to one place, so that the later one must stay the later:
// the place does not move with the loop, or is read from data that does (a scatter's indices).
bool may_meet(const Dim& offset, const Stmt& loop,
              const std::unordered_map<RegId, Dependences>& declared) {
  bool moves = false;
  for (const Dim& s : offset.symbols()) {
    moves = moves || loop_of(s) == loop.var;
    std::vector<RegId> open;
    if (auto reg = register_of(s)) open.push_back(*reg);
    for (std::unordered_set<RegId> seen; !open.empty();) {
      const RegId reg = open.back();
      open.pop_back();
      auto it = declared.find(reg);
      if (it == declared.end() || !seen.insert(reg).second) continue;
      if (it->second.loops.contains(loop.var)) return true;
      open.insert(open.end(), it->second.registers.begin(), it->second.registers.end());
    }
  }
  return !moves;
}

// A turn of the loop needs what an earlier turn did: a register it goes on changing is read for
// more than joining, memory that it writes is read, or written where an earlier turn may have. Rows
// of scratch that do not move with the loop are filled anew in each turn.
bool is_ordered(const Stmt& loop, const Kernel& kernel) {
  const Dim variable = symbol_of(loop);
  auto is_row = [&](std::int64_t param, const Dim& offset) {
    return param >= static_cast<std::int64_t>(kernel.params.size()) && !mentions(offset, variable);
  };
  std::unordered_map<RegId, Dependences> declared;
  std::unordered_set<RegId> joined;
  std::unordered_set<std::int64_t> written;
  bool assigns = false, meets = false;
  for_each_statement(loop.body, [&](const Stmt& s) {
    if (s.kind == Kind::declare) declared.emplace(s.reg, dependences(s.value));
  });
  for_each_statement(loop.body, [&](const Stmt& s) {
    if (s.kind != Kind::store || is_row(s.param, s.offset)) return;
    written.insert(s.param);
    meets = meets || may_meet(s.offset, loop, declared);
  });
  if (meets && loop.extent != Dim(1)) return true;
  for_each_statement(loop.body, [&](const Stmt& s) {
    if (declared.contains(s.reg)) return;
    assigns = assigns || s.kind == Kind::assign;
    if (s.kind == Kind::accumulate) joined.insert(s.reg);
  });
  if (assigns) return true;
  std::vector<Value> values = values_of(loop.body);
  for (NodeId n : nodes_below(values)) {
    const Graph& graph = values[0].graph();
    if (&graph.op(n) == &ops::reg &&
        joined.contains(static_cast<RegId>(graph.attrs(n).integer("index"))))
      return true;
    if (&graph.op(n) == &ops::load && written.contains(graph.attrs(n).integer("param")))
      return true;
  }
  return false;
}

// Its turns join into registers that are declared outside.
bool joins_outside(const Stmt& loop) {
  std::unordered_set<RegId> declared;
  bool joins = false;
  for_each_statement(loop.body, [&](const Stmt& s) {
    if (s.kind == Kind::declare) declared.insert(s.reg);
  });
  for_each_statement(loop.body, [&](const Stmt& s) {
    joins = joins || (s.kind == Kind::accumulate && !declared.contains(s.reg));
  });
  return joins;
}

}  // namespace

// ---- merging

namespace {

// Loop `a` around loop `b` alone is one loop over m = a * extent(b) + b when nothing depends on the
// two in any other way.
bool can_merge(const Stmt& a, const Stmt& b) {
  const Dim outer = symbol_of(a), inner = symbol_of(b);
  if (mentions(b.extent, outer)) return false;
  const Replacement together[] = {{outer, 0}, {inner, inner + outer * b.extent}};
  return for_each_dim(b.body, [&](const Dim& d) {
    return (!mentions(d, outer) && !mentions(d, inner)) || replace(d, together) == d;
  });
}

Stmt merged(const Stmt& a, Lowering& lowering) {
  const Stmt& b = a.body[0];
  Stmt one = b;
  one.extent = a.extent * b.extent;
  Dim variable = lowering.positions().add_loop(one.extent);
  one.var = *loop_of(variable);
  Rewriter(lowering.graph(), {{symbol_of(a), 0}, {symbol_of(b), variable}})(one.body);
  return one;
}

}  // namespace

void merge_loops(Block& block, Lowering& lowering) {
  for (Stmt& s : block) {
    merge_loops(s.body, lowering);
    if (is_loop(s) && s.body.size() == 1 && is_loop(s.body[0]) && can_merge(s, s.body[0]))
      s = merged(s, lowering);
  }
}

// ---- which loop runs in vectors

namespace {

bool is_expensive(const Op& op) {
  for (const Op* f : {&ops::exp, &ops::log, &ops::tanh, &ops::erf, &ops::sin, &ops::cos, &ops::pow,
                      &ops::gelu, &ops::gelu_tanh, &ops::sigmoid, &ops::silu, &ops::softplus})
    if (f == &op) return true;
  return false;
}

constexpr double vector_lanes = 16;
// Against one element of a vector that lies in order.
constexpr double scattered_load = vector_lanes, scattered_store = 1.5 * vector_lanes;

struct Access {
  Dim offset;
  bool is_store = false;
  bool is_conditional = false;
  int bytes = 4;
  double times = 1;                // how often it runs
  std::vector<const Stmt*> loops;  // around it, outermost first
};

int bytes_of(const Kernel& k, std::int64_t param) {
  auto p = static_cast<std::size_t>(param);
  return byte_size(p < k.params.size() ? k.params[p].dtype : k.scratch[p - k.params.size()].dtype);
}

class Accesses {
 public:
  explicit Accesses(const Kernel& k) : kernel_(k) {}

  void add(const Block& block) {
    for (const Stmt& s : block) {
      add_loads(s);
      if (s.kind == Kind::store)
        list.push_back({s.offset, true, bool{s.condition}, bytes_of(kernel_, s.param),
                        times(loops_.size()), loops_});
      if (is_loop(s)) loops_.push_back(&s);
      add(s.body);
      if (is_loop(s)) loops_.pop_back();
    }
  }

  std::vector<Access> list;
  double operations = 0;  // arithmetic, in elements; functions count more

 private:
  double times(std::size_t depth) const {
    double n = 1;
    for (std::size_t i = 0; i < depth; ++i) n *= std::max(1.0, typical(loops_[i]->extent));
    return n;
  }

  void add_loads(const Stmt& s) {
    std::vector<Value> roots = values_of(s);
    if (roots.empty()) return;
    const Graph& graph = roots[0].graph();
    for (NodeId n : nodes_below(roots)) {
      if (&graph.op(n) == &ops::load) {
        const Attrs& attrs = graph.attrs(n);
        list.push_back({attrs.dims("offset").at(0), false, !graph.operands(n).empty(),
                        bytes_of(kernel_, attrs.integer("param")), times(loops_.size()), loops_});
      } else if (graph.op(n).kind == OpKind::elementwise) {
        operations += times(loops_.size()) * cost(graph.op(n));
      }
    }
  }

  static double cost(const Op& op) {
    if (&op == &ops::pow) return 30;
    if (is_expensive(op)) return 12;
    return &op == &ops::div || &op == &ops::sqrt || &op == &ops::rem ? 4 : 1;
  }

  const Kernel& kernel_;
  std::vector<const Stmt*> loops_;
};

double access_cost(const Access& a, const Dim& lane) {
  if (!mentions(a.offset, lane)) return a.times;
  std::optional<Dim> stride = stride_of(a.offset, lane);
  if (stride == Dim(1)) return a.times;
  double scattered = a.is_store ? scattered_store : scattered_load;
  return a.times * scattered * (stride ? 1 : 2);
}

// Lanes of the last vector that do nothing.
double waste(const Dim& extent) {
  double n = std::max(1.0, typical(extent));
  return std::ceil(n / vector_lanes) * vector_lanes / n;
}

// The cost of all accesses when this loop, around each of them, runs in vectors.
double cost_with_outer(const Accesses& accesses, const Stmt& lane) {
  double total = 0;
  for (const Access& a : accesses.list) {
    bool is_inside = std::find(a.loops.begin(), a.loops.end(), &lane) != a.loops.end();
    total +=
        is_inside ? access_cost(a, symbol_of(lane)) * waste(lane.extent) : a.times * vector_lanes;
  }
  return total;
}

// The same when what lies in order along `across` is turned in registers.
double cost_with_pair(const Accesses& accesses, const Stmt& lane, const Stmt& across) {
  constexpr double turned = 3;
  double total = 0;
  for (const Access& a : accesses.list) {
    double cost = access_cost(a, symbol_of(lane));
    if (!a.is_store && !a.is_conditional && cost > a.times &&
        stride_of(a.offset, symbol_of(across)) == Dim(1))
      cost = a.times * turned;
    total += cost * waste(lane.extent);
  }
  return total;
}

// The cost when each access is in vectors along the innermost loop around it, which must not be one
// of the first `outer` loops.
double cost_with_inner(const Accesses& accesses, std::size_t outer, const Kernel& kernel) {
  double total = 0;
  for (const Access& a : accesses.list) {
    if (a.loops.size() <= outer) {
      total += a.times * vector_lanes;
      continue;
    }
    const Stmt& lane = *a.loops.back();
    if (contains_loop(lane.body) || is_ordered(lane, kernel)) {
      total += a.times * vector_lanes;
      continue;
    }
    total += access_cost(a, symbol_of(lane)) * waste(lane.extent);
  }
  return total;
}

bool is_mentioned_by_extents(const Block& block, const Dim& variable) {
  bool found = false;
  for_each_statement(
      block, [&](const Stmt& s) { found = found || (is_loop(s) && mentions(s.extent, variable)); });
  return found;
}

// Registers that change otherwise than by joining are for one lane.
bool assigns(const Block& block) {
  bool found = false;
  for_each_statement(block, [&](const Stmt& s) { found = found || s.kind == Kind::assign; });
  return found;
}

void mark_innermost(Block& block, const Kernel& kernel) {
  for (Stmt& s : block) {
    if (!is_loop(s)) continue;
    if (contains_loop(s.body))
      mark_innermost(s.body, kernel);
    else if (!is_ordered(s, kernel))
      s.loop = LoopKind::lanes;
  }
}

// The best loop of a perfect nest whose turns may change places goes innermost.
void sink_best(Block& block, const Kernel& kernel);

void sink_in(Stmt& top, const Kernel& kernel) {
  std::vector<Stmt*> nest = {&top};
  while (nest.back()->body.size() == 1 && is_loop(nest.back()->body[0]))
    nest.push_back(&nest.back()->body[0]);
  sink_best(nest.back()->body, kernel);
  if (nest.size() == 1 || is_ordered(top, kernel) || contains_loop(nest.back()->body)) return;
  Accesses accesses(kernel);
  Block one = {top};
  accesses.add(one);
  std::size_t best = nest.size() - 1;
  double least = INFINITY;
  for (std::size_t i = nest.size(); i-- > 0;) {
    double cost = 0;
    for (const Access& a : accesses.list)
      cost += access_cost(a, symbol_of(*nest[i])) * waste(nest[i]->extent);
    bool is_fixed = false;  // another extent depends on it
    for (Stmt* s : nest) is_fixed = is_fixed || mentions(s->extent, symbol_of(*nest[i]));
    if (cost < least && !is_fixed) least = cost, best = i;
  }
  for (std::size_t i = best; i + 1 < nest.size(); ++i) {
    std::swap(nest[i]->var, nest[i + 1]->var);
    std::swap(nest[i]->extent, nest[i + 1]->extent);
  }
}

void sink_best(Block& block, const Kernel& kernel) {
  for (Stmt& s : block)
    if (is_loop(s)) sink_in(s, kernel);
}

// ---- rows that are kept

std::unordered_set<NodeId> expensive_below(std::span<const Value> roots) {
  std::unordered_set<NodeId> out;
  if (roots.empty()) return out;
  const Graph& graph = roots[0].graph();
  for (NodeId n : nodes_below(roots)) {
    bool is = is_expensive(graph.op(n));
    for (Value operand : graph.operands(n)) is = is || out.contains(operand.node());
    if (is) out.insert(n);
  }
  return out;
}

// A longer row is computed again rather than written to far memory.
constexpr double longest_row = 1 << 18;

class RowKeeper {
 public:
  RowKeeper(Kernel& kernel, Lowering& lowering) : kernel_(kernel), lowering_(lowering) {}

  // Within one block: what an earlier lanes loop computed at the same place is read back.
  void keep(Block& block) {
    for (Stmt& s : block)
      if (is_loop(s) && s.loop != LoopKind::lanes) keep(s.body);
    for (std::size_t i = 0; i < block.size(); ++i)
      for (std::size_t k = i + 1; k < block.size() && fits(block[i]); ++k)
        if (fits(block[k]) && block[i].extent == block[k].extent) share(block, i, k);
  }

 private:
  static bool fits(const Stmt& s) {
    return is_loop(s) && s.loop == LoopKind::lanes && typical(s.extent) <= longest_row;
  }

  bool are_registers_kept(const Block& block, std::size_t i, std::size_t k, Value v) {
    Dependences d = dependences(v);
    Block between(block.begin() + static_cast<std::ptrdiff_t>(i),
                  block.begin() + static_cast<std::ptrdiff_t>(k));
    bool kept = true;
    for_each_statement(between, [&](const Stmt& s) {
      if (s.reg >= 0 && (s.kind == Kind::accumulate || s.kind == Kind::assign))
        kept = kept && !d.registers.contains(s.reg);
    });
    return kept;
  }

  // The largest expensive expressions of loop k that loop i computes too.
  void share(Block& block, std::size_t i, std::size_t k) {
    std::vector<Value> first = values_of(block[i].body), second = values_of(block[k].body);
    std::unordered_set<NodeId> there = expensive_below(first), here = expensive_below(second);
    if (there.empty() || here.empty()) return;
    const Dim at_first = symbol_of(block[i]), at_second = symbol_of(block[k]);
    Rewriter to_first(lowering_.graph(), {{at_second, at_first}});
    Rewriter read_back(lowering_.graph(), {});
    std::vector<Value> stack = second, shared;
    std::unordered_set<NodeId> seen;
    while (!stack.empty()) {
      Value v = stack.back();
      stack.pop_back();
      if (!here.contains(v.node()) || !seen.insert(v.node()).second) continue;
      Value twin = to_first(v);
      if (there.contains(twin.node()) && depends_on(v, block[k].var) &&
          are_registers_kept(block, i, k, v)) {
        read_back.set(v, keep_row(block[i], twin, at_second));
        continue;
      }
      for (Value operand : v.operands()) stack.push_back(operand);
    }
    read_back(block[k].body);
  }

  static bool depends_on(Value v, VarId var) { return dependences(v).loops.contains(var); }

  Value keep_row(Stmt& loop, Value v, const Dim& read_at) {
    auto [it, fresh] = rows_.try_emplace({loop.var, v.node()}, 0);
    if (fresh) {
      it->second = static_cast<int>(kernel_.params.size() + kernel_.scratch.size());
      kernel_.scratch.push_back({v.dtype(), loop.extent, 0});
      Stmt s{.kind = Kind::store, .param = it->second, .offset = symbol_of(loop), .value = v};
      loop.body.insert(loop.body.begin(), std::move(s));
    }
    return lowering_.load(it->second, v.dtype(), read_at);
  }

  Kernel& kernel_;
  Lowering& lowering_;
  std::map<std::pair<VarId, NodeId>, int> rows_;
};

// ---- chunks

// Work of one chunk, in bytes moved (arithmetic counts as half a byte an operation).
constexpr double chunk_work = 48 << 10;
constexpr std::int64_t lane_block = 256, across_block = 16;

struct Peeled {
  Block prefix;             // before the outer loops
  std::vector<Stmt> outer;  // without bodies
  Block inner;
};

Peeled peel(Block block, const Kernel& kernel) {
  Peeled p;
  while (!block.empty() && is_loop(block.back())) {
    bool alone = block.size() == 1;
    bool after_prefix = p.outer.empty();
    if (!alone && !after_prefix) break;
    if (is_ordered(block.back(), kernel) || joins_outside(block.back())) break;
    if (!alone) {
      // Several loops in a row are stages; only what is no loop may come before.
      if (std::any_of(block.begin(), block.end() - 1, is_loop)) break;
      p.prefix.assign(block.begin(), block.end() - 1);
    }
    Stmt loop = std::move(block.back());
    block = std::exchange(loop.body, {});
    p.outer.push_back(std::move(loop));
  }
  p.inner = std::move(block);
  return p;
}

Block nested(std::vector<Stmt> loops, Block inner) {
  for (std::size_t i = loops.size(); i-- > 0;) {
    loops[i].body = std::move(inner);
    inner = {};
    inner.push_back(std::move(loops[i]));
  }
  return inner;
}

class Chunker {
 public:
  Chunker(Kernel& kernel, Lowering& lowering) : kernel_(kernel), lowering_(lowering) {}

  Block cut(Peeled p) {
    Block whole = nested(p.outer, p.inner);
    Accesses accesses(kernel_);
    accesses.add(whole);
    double work = accesses.operations / 2;
    for (const Access& a : accesses.list) work += a.times * a.bytes;
    bool is_known = std::all_of(p.outer.begin(), p.outer.end(),
                                [](const Stmt& s) { return s.extent.is_number(); });
    if (p.outer.empty() || (is_known && work < 2 * chunk_work)) {
      p.prefix.insert(p.prefix.end(), whole.begin(), whole.end());
      return std::move(p.prefix);
    }
    return cut_at(std::move(p), work);
  }

 private:
  // Cuts the outermost loop whose turns are smaller than a chunk; the loops around it are cut into
  // single turns.
  Block cut_at(Peeled p, double work) {
    std::size_t level = 0;
    for (; level < p.outer.size(); ++level) {
      work /= std::max(1.0, typical(p.outer[level].extent));
      if (work <= chunk_work || level + 1 == p.outer.size()) break;
      if (p.outer[level].loop == LoopKind::across) break;  // stays around its lanes loop
    }
    Stmt& cut = p.outer[level];
    const Dim block = block_size(p.outer, level, work);
    const Dim blocks = ceil_div(cut.extent, block);
    kernel_.chunks = blocks;
    for (std::size_t i = 0; i < level; ++i) kernel_.chunks = kernel_.chunks * p.outer[i].extent;
    Dim chunk = lowering_.positions().add_loop(kernel_.chunks);
    Block body = std::move(p.prefix);
    std::vector<Replacement> places;
    Dim rest = chunk;
    auto last_part = [&](const Dim& extent) {
      Dim part = rest;
      part = lowering_.positions().remainder(rest, extent);
      rest = lowering_.positions().quotient(rest, extent);
      return part;
    };
    Dim at_block = level == 0 ? chunk : named(last_part(blocks), blocks, body);
    for (std::size_t i = level; i-- > 0;) {
      Dim part = i == 0 ? rest : last_part(p.outer[i].extent);
      places.push_back({symbol_of(p.outer[i]), named(part, p.outer[i].extent, body)});
    }
    std::vector<Stmt> loops(p.outer.begin() + static_cast<std::ptrdiff_t>(level), p.outer.end());
    if (block == Dim(1) && cut.loop == LoopKind::serial) {
      places.push_back({symbol_of(cut), at_block});
      loops.erase(loops.begin());
    } else {
      Dim extent = min(block, cut.extent - at_block * block);
      if (cut.extent.is_number() && block.is_number() && cut.extent.number() % block.number() == 0)
        extent = block;
      Dim inside = lowering_.positions().add_loop(extent);
      places.push_back({symbol_of(cut), at_block * block + inside});
      loops[0].var = *loop_of(inside);
      loops[0].extent = extent;
    }
    Block work_block = nested(std::move(loops), std::move(p.inner));
    Rewriter(lowering_.graph(), places)(work_block);
    for (Stmt& s : work_block) body.push_back(std::move(s));
    Stmt chunks{.kind = Kind::loop, .loop = LoopKind::chunks, .var = *loop_of(chunk)};
    chunks.extent = kernel_.chunks;
    chunks.body = std::move(body);
    Block out;
    out.push_back(std::move(chunks));
    return out;
  }

  // Turns of the cut loop in one chunk; `turn_work` is that of one with typical sizes.
  Dim block_size(const std::vector<Stmt>& loops, std::size_t level, double turn_work) {
    Dim inner = 1;
    for (std::size_t i = level + 1; i < loops.size(); ++i) inner = inner * loops[i].extent;
    double unit = turn_work / std::max(1.0, typical(inner));
    auto most =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(chunk_work / std::max(unit, 1e-3)));
    if (loops[level].loop == LoopKind::across && inner.is_number()) {
      std::int64_t rows = most / std::max<std::int64_t>(1, inner.number());
      return std::max<std::int64_t>(across_block, rows / across_block * across_block);
    }
    if (loops[level].loop == LoopKind::across) return across_block;
    if (loops[level].loop == LoopKind::lanes)
      return std::max<std::int64_t>(lane_block, most / lane_block * lane_block);
    if (inner.is_number())
      return std::max<std::int64_t>(1, most / std::max<std::int64_t>(1, inner.number()));
    return max(floor_div(Dim(most), max(inner, 1)), 1);
  }

  // A register that holds a position of the chunk, so that offsets stay simple in it.
  Dim named(const Dim& value, const Dim& extent, Block& body) {
    if (value.is_number() || value.is_symbol()) return value;
    Dim symbol = lowering_.positions().add_register(extent);
    body.push_back(
        {.kind = Kind::declare, .reg = *register_of(symbol), .value = lowering_.size(value)});
    return symbol;
  }

  Kernel& kernel_;
  Lowering& lowering_;
};

void find_sizes(Kernel& kernel, const Block& body) {
  std::map<std::string, Dim> found;
  auto note = [&](const Dim& d) {
    if (!d.is_number())
      for (const Dim& s : d.symbols())
        if (!loop_of(s) && !register_of(s)) found.emplace(s.name(), s);
    return true;
  };
  for_each_dim(body, note);
  for (const KernelScratch& s : kernel.scratch) note(s.offset);
  for (const KernelParam& p : kernel.params)
    if (p.streams_from > 0)
      for (const Dim& d : p.dims) note(d);
  kernel.sizes.clear();
  for (auto& [name, symbol] : found) kernel.sizes.push_back(symbol);
}

void lay_out_scratch(Kernel& kernel) {
  Dim offset = 0;
  for (KernelScratch& s : kernel.scratch) {
    s.offset = offset;
    offset = offset + ceil_div(s.elements * byte_size(s.dtype), 64) * Dim(64);
  }
  kernel.scratch_bytes = offset;
}

// Chooses between vectors along one of the outer loops and vectors inside the body.
void choose_lanes(Peeled& p, const Kernel& kernel) {
  sink_best(p.inner, kernel);
  Block whole = nested(p.outer, p.inner);
  std::vector<const Stmt*> loops;
  const Block* at = &whole;
  for (std::size_t i = 0; i < p.outer.size(); ++i) {
    loops.push_back(&(*at)[0]);
    at = &(*at)[0].body;
  }
  Accesses accesses(kernel);
  accesses.add(whole);
  double least =
      contains_loop(p.inner) ? cost_with_inner(accesses, p.outer.size(), kernel) : INFINITY;
  std::optional<std::size_t> best;
  for (std::size_t i = p.outer.size(); i-- > 0;) {
    if (assigns(p.inner) || is_mentioned_by_extents(p.inner, symbol_of(p.outer[i]))) continue;
    double cost = cost_with_outer(accesses, *loops[i]);
    if (cost < least) least = cost, best = i;
  }
  std::optional<std::size_t> across;
  constexpr double least_rows = 4;
  for (std::size_t i = p.outer.size(); i-- > 0 && !contains_loop(p.inner);)
    for (std::size_t k = p.outer.size(); k-- > 0;) {
      if (i == k || typical(p.outer[k].extent) < least_rows) continue;
      double cost = cost_with_pair(accesses, *loops[i], *loops[k]);
      if (cost < 0.8 * least) least = cost, best = i, across = k;
    }
  if (!best) return mark_innermost(p.inner, kernel);
  p.outer[*best].loop = LoopKind::lanes;
  if (across) p.outer[*across].loop = LoopKind::across;
  auto place = [](const Stmt& s) {
    return s.loop == LoopKind::lanes ? 2 : s.loop == LoopKind::across ? 1 : 0;
  };
  std::stable_sort(p.outer.begin(), p.outer.end(),
                   [&](const Stmt& a, const Stmt& b) { return place(a) < place(b); });
}

}  // namespace

void arrange(Kernel& kernel, Lowering& lowering, Block lowered, const TargetInfo& target) {
  merge_loops(lowered, lowering);
  Peeled p = peel(std::move(lowered), kernel);
  choose_lanes(p, kernel);
  mark_innermost(p.prefix, kernel);
  if (!std::any_of(p.outer.begin(), p.outer.end(),
                   [](const Stmt& s) { return s.loop == LoopKind::lanes; }))
    RowKeeper(kernel, lowering).keep(p.inner);
  lay_out_scratch(kernel);
  Block body = Chunker(kernel, lowering).cut(std::move(p));
  add_memory_hints(kernel, body, target);
  find_sizes(kernel, body);
  std::shared_ptr<Graph> graph = lowering.shared_graph();
  kernel.body = Nest{std::move(graph), std::move(body)};
}

}  // namespace hone
