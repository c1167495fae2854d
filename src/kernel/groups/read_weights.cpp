#include "kernel/groups/read_weights.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "kernel/nest/block_writer.h"
#include "kernel/nest/loops.h"
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
  explicit Finder(const std::vector<bool>& is_weight) : is_weight_(is_weight) {}

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
        if (is_plain && s.extent.is_number() && s.extent.number() >= 1)
          inside({&s, false}, s.body);
        else
          leave(s);
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
    if (param >= is_weight_.size() || !is_weight_[param]) return;
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
    if (n <= room)
      room -= n;
    else
      bytes.erase(param);
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

void drop_fetches(Block& block, const std::unordered_set<int>& params) {
  std::erase_if(block, [&](Stmt& s) {
    if (s.kind == Kind::fetch) return params.contains(s.param);
    if (!only_fetches(s)) return false;
    drop_fetches(s.body, params), drop_fetches(s.otherwise, params);
    return s.body.empty() && s.otherwise.empty();
  });
}

void move_to_registers(Kernel& kernel, Block& group, const std::vector<bool>& is_weight) {
  std::vector<Read> reads = chosen(Finder(is_weight).run(group), free_bytes(kernel));
  VarId next_loop = free_numbers(kernel).loop;
  Graph& graph = *kernel.graph;
  Block first;
  Rewriter use(graph, {});
  std::unordered_set<VarId> loops;
  std::unordered_set<int> params;
  for (Read& r : reads) {
    r.memory = static_cast<int>(kernel.params.size() + kernel.memory.size());
    kernel.memory.push_back({r.load.dtype(), r.elements(), 0, MemoryScope::thread});
    params.insert(r.param());
    first.push_back(reading(r, graph, next_loop));
    for (const Around& a : r.around)
      if (is_loop(*a.s)) loops.insert(a.s->var);
    use.set(r.load, graph.intern(ops::load, {},
                                 {{"param", std::int64_t{r.memory}},
                                  {"dtype", r.load.dtype()},
                                  {"offset", Dims{r.place()}}}));
  }
  drop_fetches(group, params);
  use(group);
  unroll(group, loops);
  group.insert(group.begin(), std::move_iterator(first.begin()), std::move_iterator(first.end()));
  place_memory(kernel);
}

// ---- asynchronous copies

bool only_copies(const Stmt& s) {
  if (s.kind == Kind::copy_async || s.kind == Kind::end_batch) return true;
  return (is_loop(s) || s.kind == Kind::branch) && std::ranges::all_of(s.body, only_copies) &&
         std::ranges::all_of(s.otherwise, only_copies);
}

// Keeps the copies of weights alone, or all but them. Returns whether anything is left.
bool keep_copies(Block& block, const Kernel& kernel, bool of_weights) {
  std::erase_if(block, [&](Stmt& s) {
    if (s.kind == Kind::copy_async)
      return kernel.params.at(static_cast<std::size_t>(s.a.param)).is_weight != of_weights;
    if (s.kind == Kind::end_batch) return of_weights;
    const bool has_body = keep_copies(s.body, kernel, of_weights),
               has_otherwise = keep_copies(s.otherwise, kernel, of_weights);
    return !has_body && !has_otherwise;
  });
  return !block.empty();
}

// The copies that fill the first steps: those of weights come first. They then belong to the first
// batch.
void divide_copies(Kernel& kernel, Block& group) {
  const auto copies = std::ranges::find_if(group, only_copies);
  if (copies == group.end()) return;
  Block weights = {*copies};
  if (!keep_copies(weights, kernel, true)) return;
  std::vector<Replacement> own;
  VarId next_loop = free_numbers(kernel).loop;
  for_each_statement(weights, [&](const Stmt& s) {
    if (is_loop(s)) own.push_back({symbol_of(s), loop_symbol(next_loop++, s.extent)});
  });
  Rewriter(*kernel.graph, own)(weights);
  Block others = {std::move(*copies)};
  keep_copies(others, kernel, false);
  *copies = std::move(others.at(0));
  group.insert(copies, std::move(weights[0]));
}

// ---- what comes first

// Counts what it reads of weights, and what it prefetches.
bool is_independent(const Kernel& kernel, const Stmt& s, int& reads) {
  const auto all_are = [&](const Block& block) {
    return std::ranges::all_of(
        block, [&](const Stmt& each) { return is_independent(kernel, each, reads); });
  };
  const auto is_weight = [&](int param) {
    const auto i = static_cast<std::size_t>(param);
    return i < kernel.params.size() && kernel.params[i].is_weight;
  };
  const std::vector<Value> roots = values_of(s);
  for (NodeId n : nodes_below(roots)) {
    const Value v(&roots[0].graph(), n);
    if (!v.is(ops::load)) continue;
    if (!is_weight(static_cast<int>(v.attrs().integer("param")))) return false;
    ++reads;
  }
  switch (s.kind) {
    case Kind::fetch:
      ++reads;
      return true;
    case Kind::copy_async:
      ++reads;
      return is_weight(s.a.param);
    case Kind::store: {
      const KernelMemory* to = memory_named(kernel, s.param);
      return to && to->scope == MemoryScope::thread;
    }
    case Kind::loop:
    case Kind::branch:
      return all_are(s.body) && all_are(s.otherwise);
    case Kind::declare:
    case Kind::tile_fill:
      return true;
    default:
      return false;
  }
}

}  // namespace

void read_weights_first(Kernel& kernel, const std::vector<bool>& is_weight) {
  if (!has_grid(kernel) || group_threads(kernel) <= 1 || spreads(kernel) ||
      !BlockWriter::fetches_first(kernel.chunks) ||
      std::ranges::any_of(kernel.params, &KernelParam::is_weight))
    return;
  std::vector<bool> weights = is_weight;
  for (std::size_t i = 0; i < weights.size(); ++i)
    kernel.params[i].is_weight = weights[i] = weights[i] && !kernel.params[i].written;
  Block& group = kernel.body[0].body[0].body;
  if (kernel.tiles.empty())
    move_to_registers(kernel, group, weights);
  else
    divide_copies(kernel, group);
  if (independent_statements(kernel, group) == 0)
    for (KernelParam& p : kernel.params) p.is_weight = false;
}

std::size_t independent_statements(const Kernel& kernel, const Block& group) {
  int reads = 0;
  std::size_t out = 0;
  for (const Stmt& s : group) {
    const int before = reads;
    if (!is_independent(kernel, s, reads)) {
      reads = before;
      break;
    }
    ++out;
  }
  return reads > 0 ? out : 0;
}

}  // namespace hone
