// The structural hash of a kernel: a walk that writes each fact as a number. Does not use text.
#include <unordered_map>

#include "kernel/kernel.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

class KernelHasher {
 public:
  void kernel(const Kernel& k) {
    add(k.params.size());
    for (const KernelParam& p : k.params) {
      add(p.dtype), add(p.dims), add(p.strides), add(p.written);
      add(static_cast<std::uint64_t>(p.streams_from)), add(p.is_weight);
    }
    add(k.is_aligned);
    add(k.memory.size());
    for (const KernelMemory& m : k.memory)
      add(m.dtype), add(m.elements), add(m.offset), add(m.scope);
    add(k.tiles.size());
    for (const KernelTile& t : k.tiles) add(t.dtype), add(t.rows), add(t.columns);
    add(k.sizes), add(k.chunks), add(k.scratch_bytes);
  }

  void block(const Block& block) {
    add(block.size());
    for (const Stmt& s : block) statement(s);
  }

  Hash128 result() {
    std::sort(ranges_.begin(), ranges_.end(),
              [](const SymbolRange& a, const SymbolRange& b) { return a.name < b.name; });
    for (const SymbolRange& r : ranges_)
      add(r.name), add(static_cast<std::uint64_t>(r.low)), add(static_cast<std::uint64_t>(r.high));
    return hash128(std::as_bytes(std::span(words_)));
  }

 private:
  struct SymbolRange {
    std::uint64_t name;
    std::int64_t low, high;
  };

  void add(std::uint64_t n) { words_.push_back(n); }
  void add(int n) { add(static_cast<std::uint64_t>(static_cast<std::int64_t>(n))); }
  void add(bool b) { add(std::uint64_t{b}); }
  void add(DType t) { add(static_cast<std::uint64_t>(t)); }
  void add(MemoryScope s) { add(static_cast<std::uint64_t>(s)); }
  void add(const Dim& d) {
    add(d.hash());
    ranges(d);
  }
  void add(const Dims& dims) {
    add(dims.size());
    for (const Dim& d : dims) add(d);
  }
  void add(const TileWindow& w) {
    add(w.param), add(w.offset), add(w.stride), add(w.rows.size());
    for (std::int64_t r : w.rows) add(static_cast<std::uint64_t>(r));
  }

  // The hash of a Dim does not include the ranges of symbols, on which generated code depends.
  void ranges(const Dim& d) {
    if (d.is_number() || !seen_.insert(d.expr()).second) return;
    const DimExpr& e = *d.expr();
    if (e.kind == DimExpr::Kind::symbol) {
      auto it = std::find_if(ranges_.begin(), ranges_.end(),
                             [&](const SymbolRange& r) { return r.name == e.hash; });
      if (it == ranges_.end()) it = ranges_.insert(it, {e.hash, e.low, e.high});
      it->low = std::min(it->low, e.low), it->high = std::max(it->high, e.high);
    }
    for (const DimExpr::Term& t : e.terms)
      for (const Dim& atom : t.atoms) ranges(atom);
    ranges(e.a), ranges(e.b);
  }

  // Nodes are numbered in the order of first use.
  void value(Value v) {
    if (!v) return add(std::uint64_t{0});
    if (numbers_.size() <= v.node()) numbers_.resize(v.node() + 1);
    if (numbers_[v.node()] == 0) node(v);
    add(std::uint64_t{numbers_[v.node()]});
  }

  void node(Value v) {
    const std::size_t count = v.operand_count();
    for (std::size_t i = 0; i < count; ++i) value(v.operand(i));
    add(op(v.op())), add(v.dtype()), add(count);
    for (const Attrs::Entry& e : v.attrs().entries()) {
      add(std::uint64_t{e.first.id()}), add(hash(e.second));
      if (const auto* dims = std::get_if<Dims>(&e.second))
        for (const Dim& d : *dims) ranges(d);
    }
    numbers_[v.node()] = ++last_number_;
  }

  std::uint64_t op(const Op& o) {
    auto [it, fresh] = ops_.try_emplace(&o, 0);
    if (fresh) it->second = hash_text(o.name);
    return it->second;
  }

  void statement(const Stmt& s) {
    using Kind = Stmt::Kind;
    add(static_cast<std::uint64_t>(s.kind));
    value(s.value), value(s.condition);
    switch (s.kind) {
      case Kind::loop:
        add(static_cast<std::uint64_t>(s.loop)), add(s.var), add(s.extent);
        break;
      case Kind::declare:
      case Kind::assign:
        add(s.reg);
        break;
      case Kind::accumulate:
        add(s.reg), add(op(*s.combine));
        break;
      case Kind::reduce_group:
        add(s.reg), add(op(*s.combine)), add(s.extent);
        break;
      case Kind::store:
        add(s.param), add(s.offset);
        break;
      case Kind::fetch:
        add(s.param), add(s.offset), add(s.cache);
        break;
      case Kind::barrier:
        add(s.extent);
        break;
      case Kind::branch:
      case Kind::end_batch:
        break;
      case Kind::tile_fill:
        add(s.tile), add(s.columns);
        break;
      case Kind::tile_load:
      case Kind::tile_store:
        add(s.tile), add(s.columns), add(s.a);
        break;
      case Kind::tile_multiply:
        add(s.tile), add(s.columns), add(s.a), add(s.b), add(s.a_has_columns), add(s.k_group);
        add(s.extent);
        break;
      case Kind::copy_async:
        add(s.param), add(s.offset), add(s.a), add(s.extent);
        break;
      case Kind::wait_copies:
        add(s.extent);
        break;
      case Kind::intrinsic:
        add(hash_text(s.name));
        break;
    }
    block(s.body), block(s.otherwise);
  }

  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> numbers_;  // by node; 0: not yet seen
  std::uint32_t last_number_ = 0;
  std::unordered_map<const Op*, std::uint64_t> ops_;
  std::unordered_set<const DimExpr*> seen_;
  std::vector<SymbolRange> ranges_;
};

}  // namespace

Hash128 hash(const Kernel& k) {
  KernelHasher hasher;
  hasher.kernel(k);
  hasher.block(k.body);
  return hasher.result();
}

}  // namespace hone
