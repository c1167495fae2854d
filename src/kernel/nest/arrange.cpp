#include "kernel/nest/arrange.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "kernel/nest/cost.h"
#include "kernel/nest/group_nest.h"
#include "kernel/nest/loops.h"
#include "kernel/nest/memory_hints.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

bool contains_loop(const Block& block) { return std::any_of(block.begin(), block.end(), is_loop); }

// ---- which loop runs in vectors

constexpr double vector_lanes = 16;
// Relative to one element of a contiguous vector.
constexpr double scattered_load = vector_lanes, scattered_store = 1.5 * vector_lanes;

struct Access {
  Dim offset;
  bool is_store = false;
  bool is_conditional = false;
  int bytes = 4;
  double times = 1;                // number of executions
  std::vector<const Stmt*> loops;  // around it, outermost first
};

int bytes_of(const Kernel& k, std::int64_t param) {
  auto p = static_cast<std::size_t>(param);
  return byte_size(p < k.params.size() ? k.params[p].dtype : k.memory[p - k.params.size()].dtype);
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
  double operations = 0;  // arithmetic operations, in elements; functions count more

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
        operations += times(loops_.size()) * graph.op(n).cost;
      }
    }
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

// Idle lanes of the last vector.
double waste(const Dim& extent) {
  double n = std::max(1.0, typical(extent));
  return std::ceil(n / vector_lanes) * vector_lanes / n;
}

// The cost of all accesses if this loop, which encloses them, is vectorized.
double cost_with_outer(const Accesses& accesses, const Stmt& lane) {
  double total = 0;
  for (const Access& a : accesses.list) {
    bool is_inside = std::find(a.loops.begin(), a.loops.end(), &lane) != a.loops.end();
    total +=
        is_inside ? access_cost(a, symbol_of(lane)) * waste(lane.extent) : a.times * vector_lanes;
  }
  return total;
}

// The same if what is contiguous along `across` is transposed in registers.
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

// The cost if each access is vectorized along its innermost loop, which must not be one of the
// first `outer` loops.
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

// Registers that change other than by joining belong to one lane.
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

// Moves the best loop of a perfect nest with reorderable iterations innermost.
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
    bool is_fixed = false;  // another loop's extent depends on it
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

// A longer row is recomputed rather than written to distant memory.
constexpr double longest_row = 1 << 18;

class RowKeeper {
 public:
  RowKeeper(Kernel& kernel, Lowering& lowering) : kernel_(kernel), lowering_(lowering) {}

  // Within one block: what an earlier lanes loop computed at the same position is read back.
  // Storing halves rounds them, so the loop that computes them reads them back as well. Otherwise
  // two loops would see different values of x, and x - max(x) could be positive.
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

  // Shares the largest expensive expressions of loop k that loop i also computes.
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

  static bool is_half(Value v) { return v.dtype() == DType::f16 || v.dtype() == DType::bf16; }

  static bool depends_on(Value v, VarId var) { return dependences(v).loops.contains(var); }

  Value keep_row(Stmt& loop, Value v, const Dim& read_at) {
    auto [it, fresh] = rows_.try_emplace({loop.var, v.node()}, 0);
    if (fresh) {
      it->second = static_cast<int>(kernel_.params.size() + kernel_.memory.size());
      kernel_.memory.push_back({v.dtype(), loop.extent, 0});
      const Dim at = symbol_of(loop);
      Stmt s{.kind = Kind::store, .param = it->second, .offset = at, .value = v};
      if (is_half(v)) {
        Rewriter as_stored(lowering_.graph(), {});
        as_stored.set(v, lowering_.load(it->second, v.dtype(), at));
        as_stored(loop.body);
      }
      loop.body.insert(loop.body.begin(), std::move(s));
    }
    return lowering_.load(it->second, v.dtype(), read_at);
  }

  Kernel& kernel_;
  Lowering& lowering_;
  std::map<std::pair<VarId, NodeId>, int> rows_;
};

// ---- chunks

constexpr std::int64_t lane_block = 256, across_block = 16;

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
  Chunker(Kernel& kernel, Lowering& lowering, std::int64_t chunk_bytes)
      : kernel_(kernel), lowering_(lowering), chunk_work_(static_cast<double>(chunk_bytes)) {}

  Block cut(Peeled p) {
    if (!p.outer.empty() && p.outer[0].loop == LoopKind::grid) return as_they_are(std::move(p));
    Block whole = nested(p.outer, p.inner);
    Accesses accesses(kernel_);
    accesses.add(whole);
    double work = accesses.operations / 2;
    for (const Access& a : accesses.list) work += a.times * a.bytes;
    bool is_known = std::all_of(p.outer.begin(), p.outer.end(),
                                [](const Stmt& s) { return s.extent.is_number(); });
    if (p.outer.empty() || (is_known && work < 2 * chunk_work_)) {
      p.prefix.insert(p.prefix.end(), whole.begin(), whole.end());
      return std::move(p.prefix);
    }
    return cut_at(std::move(p), work);
  }

 private:
  // Each iteration of a loop that was opened as independent is a chunk.
  Block as_they_are(Peeled p) {
    kernel_.chunks = p.outer[0].extent;
    Block out = nested(std::move(p.outer), std::move(p.inner));
    out[0].body.insert(out[0].body.begin(), std::make_move_iterator(p.prefix.begin()),
                       std::make_move_iterator(p.prefix.end()));
    return out;
  }

  // Cuts the outermost loop whose iterations are smaller than a chunk; the loops around it are cut
  // into single iterations.
  Block cut_at(Peeled p, double work) {
    std::size_t level = 0;
    for (; level < p.outer.size(); ++level) {
      work /= std::max(1.0, typical(p.outer[level].extent));
      if (work <= chunk_work_ || level + 1 == p.outer.size()) break;
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
    Stmt chunks{.kind = Kind::loop, .loop = LoopKind::grid, .var = *loop_of(chunk)};
    chunks.extent = kernel_.chunks;
    chunks.body = std::move(body);
    Block out;
    out.push_back(std::move(chunks));
    return out;
  }

  // Iterations of the cut loop in one chunk; `turn_work` is the work of one with typical sizes.
  Dim block_size(const std::vector<Stmt>& loops, std::size_t level, double turn_work) {
    Dim inner = 1;
    for (std::size_t i = level + 1; i < loops.size(); ++i) inner = inner * loops[i].extent;
    double unit = turn_work / std::max(1.0, typical(inner));
    auto most =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(chunk_work_ / std::max(unit, 1e-3)));
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

  // A register that holds a position of the chunk, which keeps offsets simple.
  Dim named(const Dim& value, const Dim& extent, Block& body) {
    if (value.is_number() || value.is_symbol()) return value;
    Dim symbol = lowering_.positions().add_register(extent);
    body.push_back(
        {.kind = Kind::declare, .reg = *register_of(symbol), .value = lowering_.size(value)});
    return symbol;
  }

  Kernel& kernel_;
  Lowering& lowering_;
  double chunk_work_;
};

// Chooses between vectorizing an outer loop and vectorizing inside the body.
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
    if (p.outer[i].loop == LoopKind::grid) continue;
    if (assigns(p.inner) || is_mentioned_by_extents(p.inner, symbol_of(p.outer[i]))) continue;
    double cost = cost_with_outer(accesses, *loops[i]);
    if (cost < least) least = cost, best = i;
  }
  std::optional<std::size_t> across;
  constexpr double least_rows = 4;
  for (std::size_t i = p.outer.size(); i-- > 0 && !contains_loop(p.inner);)
    for (std::size_t k = p.outer.size(); k-- > 0;) {
      if (i == k || typical(p.outer[k].extent) < least_rows) continue;
      if (p.outer[i].loop == LoopKind::grid || p.outer[k].loop == LoopKind::grid) continue;
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

void arrange(Kernel& kernel, Lowering& lowering, Block lowered, const TargetInfo& target,
             const Tuning& tuning) {
  if (target.group_threads > 0)
    return arrange_groups(kernel, lowering, std::move(lowered), target, tuning);
  merge_loops(lowered, lowering);
  Peeled p = peel(std::move(lowered), kernel);
  choose_lanes(p, kernel);
  mark_innermost(p.prefix, kernel);
  if (!std::any_of(p.outer.begin(), p.outer.end(),
                   [](const Stmt& s) { return s.loop == LoopKind::lanes; }))
    RowKeeper(kernel, lowering).keep(p.inner);
  place_memory(kernel);
  const std::int64_t kib =
      std::max<std::int64_t>(1, value_or(tuning, "chunk_kib", target.chunk_bytes >> 10));
  Block body = Chunker(kernel, lowering, kib << 10).cut(std::move(p));
  add_memory_hints(kernel, body, target);
  find_sizes(kernel, body);
  kernel.graph = lowering.shared_graph();
  kernel.body = std::move(body);
}

std::vector<Tuning> nest_space(const TargetInfo& target) {
  if (target.group_threads > 0) return group_nest_space(target);
  const std::int64_t kib = target.chunk_bytes >> 10;
  return {{{"chunk_kib", kib}}, {{"chunk_kib", kib / 4}}, {{"chunk_kib", kib * 4}}};
}

}  // namespace hone
