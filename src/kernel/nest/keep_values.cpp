#include "kernel/nest/keep_values.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

constexpr std::int64_t most_kept_bytes = 128;  // by a thread
constexpr std::int64_t register_bytes = 4;     // least size of an element in a register

// A loop that threads share, and what it changes.
struct RowLoop {
  Stmt* loop;
  std::unordered_map<RegId, int> versions;       // of registers, before it
  std::unordered_set<RegId> changed;             // by it
  std::unordered_map<NodeId, std::size_t> kept;  // its kept values, by index
};
// A value that several loops compute; kept by the first one.
struct Kept {
  std::size_t first, last;  // loop
  Value value;              // of the first loop
  std::int64_t memory = -1;
};

// Lanes per iteration.
std::int64_t width_of(const Stmt& loop) {
  const Stmt& inner = loop.body[0];
  return is_loop(inner) && inner.loop == LoopKind::lanes ? inner.extent.number() : 1;
}

bool is_plain_loop(const Stmt& s) {
  if (!is_loop(s) || !s.extent.is_number() || s.body.empty()) return false;
  return std::ranges::all_of(width_of(s) > 1 ? s.body[0].body : s.body, [](const Stmt& each) {
    return each.kind == Kind::declare || each.kind == Kind::accumulate || each.kind == Kind::store;
  });
}

Block& elements_of(Stmt& loop) { return width_of(loop) > 1 ? loop.body[0].body : loop.body; }

class Keeper {
 public:
  Keeper(Kernel& kernel, Lowering& lowering)
      : kernel_(kernel), lowering_(lowering), positions_(lowering.positions()) {}
  Keeper(Kernel& kernel, Lowering& lowering, std::int64_t turns, std::int64_t most_bytes)
      : Keeper(kernel, lowering) {
    turns_ = turns, most_bytes_ = most_bytes;
  }

  // Returns the bytes that it keeps per thread.
  std::int64_t run(Block& block) {
    std::vector<RowLoop> loops = row_loops(block);
    if (loops.size() < 2) return 0;
    std::vector<Kept> all = find_kept(loops);
    while (spreads() && bytes_of(all, loops) > most_bytes_) drop_last(all, loops);
    const std::int64_t bytes = spreads() ? bytes_of(all, loops) : bytes_at_once(all, loops);
    if (all.empty() || bytes > most_bytes_) return 0;
    for (Kept& k : all) {
      k.memory = static_cast<std::int64_t>(kernel_.params.size() + kernel_.memory.size());
      const Stmt& first = *loops[k.first].loop;
      kernel_.memory.push_back({k.value.dtype(), first.extent.number() * width_of(first), 0,
                                spreads() ? MemoryScope::spread : MemoryScope::thread});
    }
    std::vector<Block> copies;  // before each loop
    for (std::size_t i = 0; i < loops.size(); ++i) copies.push_back(use_kept(loops[i], i, all));
    for (std::size_t i = loops.size(); i-- > 0;)
      block.insert(block.begin() + (loops[i].loop - block.data()),
                   std::move_iterator(copies[i].begin()), std::move_iterator(copies[i].end()));
    return bytes;
  }

 private:
  // Loops of plain statements with the same iterations as the first.
  std::vector<RowLoop> row_loops(Block& block) const {
    std::vector<RowLoop> out;
    const auto is_wanted = [&](const Stmt& s) {
      return is_plain_loop(s) && (turns_ == 0 || s.extent == Dim(turns_));
    };
    std::unordered_map<RegId, int> versions;
    for (Stmt& s : block) {
      std::unordered_set<RegId> changed;
      for_each_statement({s}, [&](const Stmt& each) {
        if (each.reg >= 0) changed.insert(each.reg);
      });
      if (is_wanted(s) && (out.empty() || (s.extent == out[0].loop->extent &&
                                           width_of(s) == width_of(*out[0].loop))))
        out.push_back({&s, versions, changed, {}});
      for (RegId r : changed) ++versions[r];
    }
    return out;
  }

  // The largest values that an earlier loop has already computed.
  std::vector<Kept> find_kept(std::vector<RowLoop>& loops) {
    struct Known {
      std::size_t loop;
      Value value;
      std::vector<std::pair<RegId, int>> registers;
      std::int64_t kept = -1;
    };
    std::vector<Kept> out;
    std::unordered_map<NodeId, std::vector<Known>> known;  // by value in the first loop's variables
    for (std::size_t i = 0; i < loops.size(); ++i) {
      const Stmt& s = *loops[i].loop;
      const Stmt& first = *loops[0].loop;
      std::vector<Replacement> in_first = {{symbol_of(s), symbol_of(first)}};
      if (width_of(s) > 1) in_first.push_back({symbol_of(s.body[0]), symbol_of(first.body[0])});
      Rewriter common(lowering_.graph(), in_first);
      const std::vector<Value> roots = values_of(s.body);
      std::vector<NodeId> nodes = nodes_below(roots);
      std::unordered_map<NodeId, Known*> available;
      std::vector<std::pair<NodeId, Known>> fresh;
      for (NodeId n : nodes) {
        const Value v(&lowering_.graph(), n);
        if (turns_ > 0 && !v.is(ops::load)) continue;
        const std::optional<std::vector<std::pair<RegId, int>>> registers =
            kept_registers(v, loops[i]);
        if (!registers) continue;
        const NodeId key = common(v).node();
        for (Known& k : known[key])
          if (k.registers == *registers) available[n] = &k;
        if (!available.contains(n)) fresh.push_back({key, {i, v, *registers}});
      }
      std::vector<Value> open(roots);
      std::unordered_set<NodeId> seen;
      while (!open.empty()) {
        const Value v = open.back();
        open.pop_back();
        if (!v || !seen.insert(v.node()).second) continue;
        if (const auto it = available.find(v.node()); it != available.end()) {
          Known& k = *it->second;
          if (k.kept < 0) {
            k.kept = std::ssize(out);
            out.push_back({k.loop, i, k.value});
          }
          const auto place = static_cast<std::size_t>(k.kept);
          out[place].last = i;
          loops[i].kept.emplace(v.node(), place);
          continue;
        }
        for (const Value& operand : v.operands()) open.push_back(operand);
      }
      for (auto& [key, k] : fresh) known[key].push_back(std::move(k));
    }
    return out;
  }

  // The registers that a value reads, which the loop must not change. Nullopt for values that are
  // the same in all iterations or do not come from memory, and for sums and products of halves,
  // which are held wider than in memory.
  static std::optional<std::vector<std::pair<RegId, int>>> kept_registers(const Value& v,
                                                                          const RowLoop& loop) {
    const bool is_half = v.dtype() == DType::f16 || v.dtype() == DType::bf16;
    if (is_half && !v.is(ops::load)) return std::nullopt;
    const Stmt& s = *loop.loop;
    const Dependences found = dependences(v);
    if (!found.loops.contains(s.var) && !(width_of(s) > 1 && found.loops.contains(s.body[0].var)))
      return std::nullopt;
    const std::vector<NodeId> below = nodes_below(std::span(&v, 1));
    if (std::ranges::none_of(below, [&](NodeId n) { return Value(&v.graph(), n).is(ops::load); }))
      return std::nullopt;
    std::vector<std::pair<RegId, int>> out;
    for (RegId r : found.registers) {
      if (loop.changed.contains(r)) return std::nullopt;
      const auto version = loop.versions.find(r);
      out.emplace_back(r, version == loop.versions.end() ? 0 : version->second);
    }
    std::ranges::sort(out);
    return out;
  }

  bool spreads() const { return turns_ > 0; }

  static void drop_last(std::vector<Kept>& all, std::vector<RowLoop>& loops) {
    all.pop_back();
    for (RowLoop& l : loops)
      std::erase_if(l.kept, [&](const auto& each) { return each.second == all.size(); });
  }

  static std::int64_t bytes_of(const std::vector<Kept>& all, const std::vector<RowLoop>& loops) {
    std::int64_t out = 0;
    for (const Kept& k : all) {
      const Stmt& first = *loops[k.first].loop;
      out += first.extent.number() * width_of(first) * byte_size(k.value.dtype());
    }
    return out;
  }

  // Maximum bytes that a thread holds between two loops.
  static std::int64_t bytes_at_once(const std::vector<Kept>& all,
                                    const std::vector<RowLoop>& loops) {
    std::int64_t most = 0;
    for (std::size_t i = 0; i + 1 < loops.size(); ++i) {
      std::int64_t here = 0;
      for (const Kept& k : all)
        if (k.first <= i && k.last > i)
          here += loops[0].loop->extent.number() * width_of(*loops[0].loop) *
                  std::max<std::int64_t>(byte_size(k.value.dtype()), register_bytes);
      most = std::max(most, here);
    }
    return most;
  }

  // True if vectors of 16 bytes can be copied unchanged: the load is unconditional, and the lanes
  // of an iteration are one vector.
  static bool is_copied(const Value& load, const Stmt& loop) {
    const std::int64_t width = width_of(loop);
    return width * byte_size(load.dtype()) == vector_alignment && load.operand_count() == 0 &&
           stride_of(load.attrs().dims("offset").at(0), symbol_of(loop.body[0])) == Dim(1);
  }

  // A loop of asynchronous copies of all that a loop loads.
  Stmt copying_loop(const Kept& k, const Stmt& loop) {
    const Dim turn = positions_.add_loop(loop.extent);
    const Replacement at[] = {{symbol_of(loop), turn}, {symbol_of(loop.body[0]), 0}};
    Stmt copy{.kind = Kind::copy_async,
              .extent = width_of(loop),
              .param = static_cast<int>(k.memory),
              .offset = turn * Dim(width_of(loop))};
    copy.a.param = static_cast<int>(k.value.attrs().integer("param"));
    copy.a.offset = replace(k.value.attrs().dims("offset").at(0), at);
    Stmt out{.kind = Kind::loop, .loop = LoopKind::unrolled, .var = *loop_of(turn)};
    out.extent = loop.extent;
    out.body.push_back(std::move(copy));
    return out;
  }

  // Reads what earlier loops kept, and keeps what this loop computes first. Returns the statements
  // to insert before the loop.
  Block use_kept(RowLoop& l, std::size_t number, const std::vector<Kept>& all) {
    Stmt& loop = *l.loop;
    const std::int64_t width = width_of(loop);
    const Dim lane = width > 1 ? symbol_of(loop.body[0]) : Dim(0);
    const Dim at = symbol_of(loop) * Dim(width) + lane;
    Rewriter rewriter(lowering_.graph(), {});
    for (const auto& [node, place] : l.kept) {
      const Kept& k = all[place];
      const Value v(&lowering_.graph(), node);
      rewriter.set(v, lowering_.load(static_cast<int>(k.memory), v.dtype(), at));
    }
    std::vector<const Kept*> own;
    for (const Kept& k : all)
      if (k.first == number) own.push_back(&k);
    if (own.empty() && l.kept.empty()) return {};
    std::ranges::sort(own, {}, [](const Kept* k) { return k->value.node(); });  // operands first
    Block& body = elements_of(loop);
    Block before, copies;
    for (const Kept* k : own) {
      if (spreads() && is_copied(k->value, loop)) {
        copies.push_back(copying_loop(*k, loop));
        rewriter.set(k->value, lowering_.load(static_cast<int>(k->memory), k->value.dtype(), at));
        continue;
      }
      const RegId reg = positions_.new_register();
      const Value held = lowering_.reg(reg, k->value.dtype());
      before.push_back({.kind = Kind::declare, .reg = reg, .value = rewriter(k->value)});
      before.push_back(
          {.kind = Kind::store, .param = static_cast<int>(k->memory), .offset = at, .value = held});
      rewriter.set(k->value, held);
    }
    rewriter(body);
    body.insert(body.begin(), before.begin(), before.end());
    loop.loop = LoopKind::unrolled;
    if (!copies.empty()) copies.push_back({.kind = Kind::end_batch});
    // A loop that copies nothing waits, too: otherwise compilers would hold all that an earlier
    // loop has read in registers, instead of reading the memory again.
    if (spreads()) copies.push_back({.kind = Kind::wait_copies, .extent = 0});
    return copies;
  }

  Kernel& kernel_;
  Lowering& lowering_;
  Positions& positions_;
  // Iterations of the loops to handle, whose loads go to spread memory; 0: all loops, which keep
  // computed values in memory of the thread.
  std::int64_t turns_ = 0;
  std::int64_t most_bytes_ = most_kept_bytes;
};

// True if the loop's stores to parameters can be moved after the loop, and that is better.
bool stores_better_last(Stmt& loop, const Kernel& kernel) {
  if (!is_plain_loop(loop)) return false;
  const Block& body = elements_of(loop);
  const std::int64_t elements = loop.extent.number() * width_of(loop);
  std::unordered_set<RegId> changed;
  std::int64_t bytes = 0;
  for (const Stmt& s : body) {
    if (s.kind != Kind::store) changed.insert(s.reg);
    if (s.kind != Kind::store || s.param >= std::ssize(kernel.params)) continue;
    Dependences place;
    add_dependences(s.offset, place);
    if (s.condition ||
        std::ranges::any_of(place.registers, [&](RegId r) { return changed.contains(r); }))
      return false;
    bytes += elements * std::max<std::int64_t>(byte_size(s.value.dtype()), register_bytes);
  }
  const std::vector<Value> values = values_of(body);
  const auto loads = [&](NodeId n) {
    const Value v(&values[0].graph(), n);
    return v.is(ops::load) && v.attrs().integer("param") < std::ssize(kernel.params);
  };
  return loop.extent.number() > 1 && bytes > 0 && bytes <= most_kept_bytes &&
         std::ranges::any_of(nodes_below(values), loads);
}

// Moves the stores to parameters out of the loop; returns the loop that does them.
Stmt taken_stores(Stmt& loop, Kernel& kernel, Lowering& lowering) {
  Positions& positions = lowering.positions();
  const std::int64_t width = width_of(loop);
  const auto place = [&](const Stmt& l) {
    return symbol_of(l) * Dim(width) + (width > 1 ? symbol_of(l.body[0]) : Dim(0));
  };
  Stmt out = loop;
  out.var = *loop_of(positions.add_loop(loop.extent));
  std::vector<Replacement> turns = {{symbol_of(loop), symbol_of(out)}};
  if (width > 1) {
    out.body[0].var = *loop_of(positions.add_loop(width));
    turns.push_back({symbol_of(loop.body[0]), symbol_of(out.body[0])});
  }
  const Rewriter moved(lowering.graph(), turns);
  Block& stores = elements_of(out);
  stores.clear();
  const std::size_t params = kernel.params.size();
  for (Stmt& s : elements_of(loop)) {
    if (s.kind != Kind::store || s.param >= std::ssize(kernel.params)) continue;
    const auto memory = static_cast<int>(params + kernel.memory.size());
    const DType dtype = s.value.dtype();
    kernel.memory.push_back({dtype, loop.extent.number() * width, 0, MemoryScope::thread});
    Stmt store = s;
    store.offset = moved(s.offset);
    store.value = lowering.load(memory, dtype, place(out));
    stores.push_back(std::move(store));
    s.param = memory;
    s.offset = place(loop);
  }
  loop.loop = out.loop = LoopKind::unrolled;
  return out;
}

}  // namespace

void store_last(Block& block, Kernel& kernel, Lowering& lowering) {
  Block out;
  for (Stmt& s : block) {
    const bool is_split = stores_better_last(s, kernel);
    out.push_back(std::move(s));
    if (is_split) out.push_back(taken_stores(out.back(), kernel, lowering));
  }
  block = std::move(out);
}

void keep_values(Block& block, Kernel& kernel, Lowering& lowering) {
  Keeper(kernel, lowering).run(block);
}

std::int64_t keep_loads(Block& block, Kernel& kernel, Lowering& lowering, std::int64_t turns,
                        std::int64_t most_bytes) {
  return Keeper(kernel, lowering, turns, most_bytes).run(block);
}

}  // namespace hone
