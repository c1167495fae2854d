#include "kernel/read_weights.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "kernel/block_writer.h"
#include "kernel/loops.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

// A loop or a branch around a read.
struct Around {
  const Stmt* s = nullptr;
  bool is_otherwise = false;
  bool operator==(const Around&) const = default;
};

struct Read {
  Value load;
  std::vector<Around> around;  // outermost first, without loops on which nothing depends
  bool stays = false;          // cannot be moved, or is also read under other conditions
  int memory = -1;             // number of the thread's memory, once it is moved

  int param() const { return static_cast<int>(load.attrs().integer("param")); }
  std::int64_t elements() const {
    std::int64_t out = 1;
    for (const Around& a : around)
      if (is_loop(*a.s)) out *= a.s->extent.number();
    return out;
  }
  // Vectors are held as they are; other elements have a register each.
  std::int64_t bytes() const {
    const std::int64_t element = byte_size(load.dtype());
    const bool is_vector = !around.empty() && is_lanes(*around.back().s);
    return elements() * (is_vector ? element : std::max<std::int64_t>(element, 4));
  }
  // The element's place in the memory, in variables of the loops around the read.
  Dim place() const {
    Dim out = 0;
    for (const Around& a : around)
      if (is_loop(*a.s)) out = out * a.s->extent + symbol_of(*a.s);
    return out;
  }
  static bool is_lanes(const Stmt& s) { return is_loop(s) && s.loop == LoopKind::lanes; }
};

// True if the value needs neither registers nor memory.
bool is_of_positions(Value v) {
  return dependences(v).registers.empty() &&
         std::ranges::none_of(nodes_below(std::span(&v, 1)),
                              [&](NodeId n) { return Value(&v.graph(), n).is(ops::load); });
}

class Finder {
 public:
  Finder(const Kernel& kernel, const std::vector<bool>& is_weight)
      : kernel_(kernel), is_weight_(is_weight) {}

  std::vector<Read> run(const Block& group) {
    find(group);
    return std::move(found_);
  }

 private:
  static constexpr std::int64_t most_turns = 8;  // of a loop that has to be unrolled

  void find(const Block& block) {
    for (const Stmt& s : block) {
      if (is_loop(s)) {
        const bool is_plain =
            s.loop == LoopKind::serial || s.loop == LoopKind::unrolled || s.loop == LoopKind::lanes;
        const bool is_known = s.extent.is_number() && s.extent.number() >= 1;
        is_plain&& is_known ? inside({&s, false}, s.body) : leave(s);
      } else if (s.kind == Kind::branch && is_of_positions(s.condition)) {
        inside({&s, false}, s.body);
        inside({&s, true}, s.otherwise);
      } else if (s.kind == Kind::branch || s.kind == Kind::intrinsic) {
        leave(s);
      } else {
        const std::vector<Value> roots = values_of(s);
        for (NodeId n : nodes_below(roots)) note(Value(&roots[0].graph(), n), false);
      }
    }
  }
  // Its reads stay where they are.
  void leave(const Stmt& s) {
    const std::vector<Value> roots = values_of(Block{s});
    for (NodeId n : nodes_below(roots)) note(Value(&roots[0].graph(), n), true);
  }
  void inside(Around a, const Block& block) {
    around_.push_back(a);
    find(block);
    around_.pop_back();
  }

  void note(Value v, bool stays) {
    if (!v.is(ops::load)) return;
    const auto param = static_cast<std::size_t>(v.attrs().integer("param"));
    if (param >= is_weight_.size() || !is_weight_[param] || kernel_.params[param].written) return;
    Read read{v, around_of(v)};
    const bool is_long = std::ranges::any_of(read.around, [](const Around& a) {
      return is_loop(*a.s) && a.s->loop == LoopKind::serial && a.s->extent.number() > most_turns;
    });
    read.stays = stays || is_long || !dependences(v).registers.empty() ||
                 (v.operand_count() > 0 && !is_of_positions(v.operand(0)));
    const auto [known, is_new] = places_.emplace(v.node(), found_.size());
    if (is_new) return found_.push_back(std::move(read));
    Read& other = found_[known->second];
    other.stays = other.stays || read.stays || other.around != read.around;
  }

  std::vector<Around> around_of(Value v) const {
    Dependences needed = dependences(v);
    for (const Around& a : around_)
      if (!is_loop(*a.s)) needed.loops.merge(dependences(a.s->condition).loops);
    std::vector<Around> out;
    for (const Around& a : around_)
      if (!is_loop(*a.s) || needed.loops.contains(a.s->var)) out.push_back(a);
    return out;
  }

  const Kernel& kernel_;
  const std::vector<bool>& is_weight_;
  std::vector<Around> around_;
  std::vector<Read> found_;
  std::unordered_map<NodeId, std::size_t> places_;  // in found_, of loads
};

// Bytes of registers that a thread can hold in addition to what the kernel needs anyway.
std::int64_t free_bytes(const Kernel& kernel) {
  constexpr std::int64_t all_registers = 60'000, others = 80, most = 160;
  return 4 * std::clamp<std::int64_t>(all_registers / group_threads(kernel) - others, 0, most);
}

// Only weights of which all reads can be moved, smallest first as long as there is room.
std::vector<Read> chosen(std::vector<Read> all, std::int64_t room) {
  std::unordered_map<int, std::int64_t> bytes;
  for (const Read& r : all) bytes[r.param()] += r.bytes();
  for (const Read& r : all)
    if (r.stays) bytes.erase(r.param());
  std::vector<std::pair<std::int64_t, int>> order;
  for (const auto& [param, n] : bytes) order.emplace_back(n, param);
  std::ranges::sort(order);
  for (const auto& [n, param] : order) {
    if (n > room) bytes.erase(param);
    room -= std::min(n, room);
  }
  std::erase_if(all, [&](const Read& r) { return !bytes.contains(r.param()); });
  return all;
}

// The read alone, into the thread's memory, with loops of its own.
Stmt reading(const Read& read, Graph& graph, VarId& next_loop) {
  std::vector<Replacement> own;
  std::unordered_map<const Stmt*, VarId> loops;
  for (const Around& a : read.around)
    if (is_loop(*a.s)) {
      loops[a.s] = next_loop;
      own.push_back({symbol_of(*a.s), loop_symbol(next_loop++, a.s->extent)});
    }
  Rewriter rewriter(graph, own);
  Stmt out{.kind = Kind::store, .param = read.memory, .offset = rewriter(read.place())};
  out.value = rewriter(read.load);
  for (auto a = read.around.rbegin(); a != read.around.rend(); ++a) {
    Stmt outer{.kind = a->s->kind};
    if (is_loop(*a->s)) {
      outer.loop = Read::is_lanes(*a->s) ? LoopKind::lanes : LoopKind::unrolled;
      outer.var = loops.at(a->s);
      outer.extent = a->s->extent;
    } else {
      outer.condition = rewriter(a->s->condition);
    }
    (a->is_otherwise ? outer.otherwise : outer.body).push_back(std::move(out));
    out = std::move(outer);
  }
  return out;
}

// Memory with a place that depends on a loop is in registers only if the loop is unrolled.
void unroll(Block& block, const std::unordered_set<VarId>& loops) {
  for (Stmt& s : block) {
    if (is_loop(s) && s.loop == LoopKind::serial && loops.contains(s.var))
      s.loop = LoopKind::unrolled;
    unroll(s.body, loops), unroll(s.otherwise, loops);
  }
}

void drop_fetches(Block& block, const std::vector<KernelParam>& params) {
  std::erase_if(block, [&](Stmt& s) {
    if (s.kind == Kind::fetch) return params.at(static_cast<std::size_t>(s.param)).is_weight;
    if (!only_fetches(s)) return false;
    drop_fetches(s.body, params), drop_fetches(s.otherwise, params);
    return s.body.empty() && s.otherwise.empty();
  });
}

}  // namespace

void read_weights_first(Kernel& kernel, const std::vector<bool>& is_weight) {
  if (!has_grid(kernel) || group_threads(kernel) <= 1 || !kernel.tiles.empty() || spreads(kernel) ||
      !BlockWriter::fetches_first(kernel.chunks))
    return;
  Block& group = kernel.body[0].body[0].body;
  std::vector<Read> reads = chosen(Finder(kernel, is_weight).run(group), free_bytes(kernel));
  if (reads.empty()) return;
  VarId next_loop = 0;
  for_each_statement(kernel.body,
                     [&](const Stmt& s) { next_loop = std::max(next_loop, s.var + 1); });
  Graph& graph = *kernel.graph;
  Block first;
  Rewriter use(graph, {});
  std::unordered_set<VarId> loops;
  for (Read& r : reads) {
    r.memory = static_cast<int>(kernel.params.size() + kernel.memory.size());
    kernel.memory.push_back({r.load.dtype(), r.elements(), 0, MemoryScope::thread});
    kernel.params[static_cast<std::size_t>(r.param())].is_weight = true;
    first.push_back(reading(r, graph, next_loop));
    for (const Around& a : r.around)
      if (is_loop(*a.s)) loops.insert(a.s->var);
    use.set(r.load, graph.intern(ops::load, {},
                                 {{"param", std::int64_t{r.memory}},
                                  {"dtype", r.load.dtype()},
                                  {"offset", Dims{r.place()}}}));
  }
  drop_fetches(group, kernel.params);
  use(group);
  unroll(group, loops);
  group.insert(group.begin(), std::move_iterator(first.begin()), std::move_iterator(first.end()));
  place_memory(kernel);
}

bool reads_only_weights(const Kernel& kernel, const Stmt& s) {
  const auto all_do = [&](const Block& block) {
    return std::ranges::all_of(block,
                               [&](const Stmt& each) { return reads_only_weights(kernel, each); });
  };
  if (s.kind == Kind::fetch) return true;
  if (is_loop(s)) return all_do(s.body);
  if (s.kind == Kind::branch)
    return is_of_positions(s.condition) && all_do(s.body) && all_do(s.otherwise);
  const KernelMemory* to = memory_named(kernel, s.param);
  if (s.kind != Kind::store || !to || to->scope != MemoryScope::thread) return false;
  const std::vector<Value> roots = values_of(s);
  int loads = 0;
  for (NodeId n : nodes_below(roots)) {
    const Value v(&roots[0].graph(), n);
    if (v.is(ops::reg)) return false;
    if (!v.is(ops::load)) continue;
    const auto param = static_cast<std::size_t>(v.attrs().integer("param"));
    if (param >= kernel.params.size() || !kernel.params[param].is_weight) return false;
    ++loads;
  }
  return loads > 0;
}

}  // namespace hone
