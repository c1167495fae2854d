#include "kernel/nest/loops.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

}  // namespace

// ---- order

namespace {

// True if two iterations of a loop may store to one place, so that their order must be kept: the
// place does not move with the loop, or depends on data that does (a scatter's indices).
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

}  // namespace

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

// ---- merging

namespace {

// True if loop `a`, which contains only loop `b`, can become one loop over m = a * extent(b) + b,
// because nothing else depends on the two.
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

// ---- outer loops

Peeled peel(Block block, const Kernel& kernel) {
  Peeled p;
  while (!block.empty() && is_loop(block.back())) {
    bool alone = block.size() == 1;
    bool after_prefix = p.outer.empty();
    if (!alone && !after_prefix) break;
    if (block.back().loop != LoopKind::grid &&
        (is_ordered(block.back(), kernel) || joins_outside(block.back())))
      break;
    if (!alone) {
      // Several loops in a row are stages; only statements that are not loops may come before.
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

// ---- declarations of a kernel

void find_sizes(Kernel& kernel, const Block& body) {
  std::map<std::string, Dim> found;
  auto note = [&](const Dim& d) {
    if (!d.is_number())
      for (const Dim& s : d.symbols())
        if (!loop_of(s) && !register_of(s)) found.emplace(s.name(), s);
    return true;
  };
  for_each_dim(body, note);
  for (const KernelMemory& s : kernel.memory) note(s.offset);
  for (const KernelParam& p : kernel.params)
    if (p.streams_from > 0)
      for (const Dim& d : p.dims) note(d);
  kernel.sizes.clear();
  for (auto& [name, symbol] : found) kernel.sizes.push_back(symbol);
}

void place_memory(Kernel& kernel) {
  Dim of_thread = 0, of_group = 0, spread = 0;
  for (KernelMemory& m : kernel.memory) {
    Dim& end = m.scope == MemoryScope::thread  ? of_thread
               : m.scope == MemoryScope::group ? of_group
                                               : spread;
    m.offset = end;
    end = end + ceil_div(m.elements * Dim(byte_size(m.dtype)), 64) * Dim(64);
  }
  kernel.scratch_bytes = of_thread;
}

}  // namespace hone
