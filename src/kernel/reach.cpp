#include "kernel/reach.h"

#include <algorithm>
#include <unordered_set>

#include "kernel/walk.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

class Walk {
 public:
  Walk(const Kernel& kernel, int param, std::int64_t chunk) : kernel_(kernel), param_(param) {
    known_.push_back({symbol_of(kernel.body[0]), chunk});
    for_each_statement(kernel.body, [&](const Stmt& s) {
      if (s.reg >= 0 && s.kind != Kind::declare) changed_.insert(s.reg);
    });
  }

  std::optional<Reach> reach() {
    add(kernel_.body[0].body);
    return is_known_ ? found_ : std::nullopt;
  }

 private:
  void add(const Block& block) {
    for (const Stmt& s : block) {
      add_loads(s);
      add(s);
      add(s.body);
      add(s.otherwise);
    }
  }

  void add(const Stmt& s) {
    switch (s.kind) {
      case Kind::declare:
        if (s.value.is(ops::dims) && !changed_.contains(s.reg))
          known_.push_back({register_of_number(s.reg), at(s.value.attrs().dims("dims").at(0))});
        return;
      case Kind::store:
        return touch(s.param, s.offset, 0);
      case Kind::tile_load:
      case Kind::tile_store:
        return touch(s.a, s.columns, 0);
      case Kind::tile_multiply: {
        touch(s.a, s.extent, s.a_has_columns ? at(s.columns).high() - 1 : 0);
        // Neighbouring k of narrow operands are adjacent in memory.
        return touch(s.b, ceil_div(s.extent, s.k_group), at(s.columns).high() * s.k_group - 1);
      }
      case Kind::loop:
        is_known_ = is_known_ && s.loop != LoopKind::group;
        return;
      case Kind::assign:
      case Kind::accumulate:
      case Kind::branch:
      case Kind::fetch:
      case Kind::tile_fill:
        return;
      default:
        is_known_ = false;
    }
  }

  void add_loads(const Stmt& s) {
    const std::vector<Value> roots = values_of(s);
    for (NodeId n : nodes_below(roots)) {
      const Value v(&roots[0].graph(), n);
      if (v.is(ops::load))
        touch(static_cast<int>(v.attrs().integer("param")), v.attrs().dims("offset").at(0), 0);
    }
  }

  void touch(const TileWindow& w, const Dim& steps, std::int64_t beside) {
    if (w.param != param_) return;
    const auto [least, most] = std::ranges::minmax(w.rows.empty() ? zero_ : w.rows);
    const Dim last = at((steps - 1) * w.stride);
    touch(w.param, w.offset + Dim(least), 0);
    touch(w.param, w.offset + Dim(most), std::max<std::int64_t>(last.high(), 0) + beside);
    is_known_ = is_known_ && at(w.stride).low() >= 0;
  }

  // `more`: number of elements after the offset.
  void touch(int param, const Dim& offset, std::int64_t more) {
    if (param != param_) return;
    const Dim d = at(offset);
    const Reach r{d.low(), d.high() + more};
    found_ = found_ ? Reach{std::min(found_->first, r.first), std::max(found_->last, r.last)} : r;
  }

  Dim at(const Dim& d) const { return replace(d, known_); }

  // In positions a register is identified by its number alone.
  static Dim register_of_number(RegId reg) { return register_symbol(reg, 0, 1); }

  const Kernel& kernel_;
  int param_;
  std::vector<Replacement> known_;
  std::unordered_set<RegId> changed_;
  std::optional<Reach> found_;
  bool is_known_ = true;
  const std::vector<std::int64_t> zero_ = {0};
};

}  // namespace

std::optional<Reach> reach(const Kernel& kernel, int param, std::int64_t chunk) {
  if (!kernel.sizes.empty() || !has_grid(kernel)) return std::nullopt;
  return Walk(kernel, param, chunk).reach();
}

}  // namespace hone
