// Wrong kernels: a kernel is broken after it is chosen and before it becomes code, as a bug in
// lowering or code generation would do.
#include <algorithm>
#include <cmath>

#include "ops/ops.h"
#include "test/fault/fault.h"
#include "test/fault/kernel_change.h"

namespace hone::test {

namespace {

Fault wrong(std::string name, std::string what, Break change) {
  Fault f;
  f.name = "kernel-" + std::move(name);
  f.what = std::move(what);
  f.break_kernel = std::move(change);
  return f;
}

// ---- loop nests

// Shortens the first loop of this kind that has more than one iteration.
Break shorter(LoopKind kind) {
  return [kind](Kernel& k) {
    return any_statement(k, [&](Stmt& s) {
      if (s.kind != Stmt::Kind::loop || s.loop != kind || s.extent.low() < 2) return false;
      s.extent = s.extent - Dim(1);
      return true;
    });
  };
}

void add_nests(std::vector<Fault>& all) {
  all.push_back(wrong("serial-loop-short", "a serial loop leaves its last round out",
                      shorter(LoopKind::serial)));
  all.push_back(wrong("lanes-loop-short", "a vector loop leaves its last lane out",
                      shorter(LoopKind::lanes)));
  all.push_back(wrong("no-tail", "a vector loop leaves its tail out", [](Kernel& k) {
    return any_statement(k, [](Stmt& s) {
      if (s.kind != Stmt::Kind::loop || s.loop != LoopKind::lanes || !s.extent.is_number() ||
          s.extent.number() % 8 == 0)
        return false;
      s.extent = s.extent.number() / 8 * 8;
      return true;
    });
  }));
  all.push_back(wrong("store-lost", "a store is left out", [](Kernel& k) {
    return any_statement(k, [](Stmt& s) {
      auto it = std::find_if(s.body.begin(), s.body.end(),
                             [](const Stmt& t) { return t.kind == Stmt::Kind::store; });
      if (it == s.body.end()) return false;
      s.body.erase(it);
      return true;
    });
  }));
  all.push_back(wrong("store-in-one-place", "all stores go to the first element", [](Kernel& k) {
    return any_statement(k, [](Stmt& s) {
      if (s.kind != Stmt::Kind::store || s.offset == Dim(0)) return false;
      s.offset = 0;
      return true;
    });
  }));
  all.push_back(wrong("sum-keeps-last", "an accumulation becomes an assignment", [](Kernel& k) {
    return any_statement(k, [](Stmt& s) {
      if (s.kind != Stmt::Kind::accumulate) return false;
      s.kind = Stmt::Kind::assign;
      return true;
    });
  }));
  all.push_back(wrong("sum-is-max", "an accumulation joins by another operation", [](Kernel& k) {
    return any_statement(k, [](Stmt& s) {
      if (s.kind != Stmt::Kind::accumulate || !is_real(s.value)) return false;
      s.combine = s.combine == &ops::add ? &ops::maximum : &ops::add;
      return true;
    });
  }));
  all.push_back(wrong("start-is-one", "a register starts at one more", [](Kernel& k) {
    Stmt* found = nullptr;
    any_statement(k, [&](Stmt& s) {
      if (s.kind == Stmt::Kind::declare && is_real(s.value)) found = &s;
      return found != nullptr;
    });
    if (!found) return false;
    found->value = made(ops::add, {found->value, number(found->value, 1)});
    return true;
  }));
  all.push_back(wrong("condition-ignored", "what a branch guards is never done", [](Kernel& k) {
    return any_statement(k, [](Stmt& s) {
      if (s.kind != Stmt::Kind::branch) return false;
      s.body.clear();
      return true;
    });
  }));
}

void add_expressions(std::vector<Fault>& all) {
  const auto op = [&](const char* name, const char* what, const Op& o, ReplaceValue make) {
    all.push_back(wrong(name, what, replacing(o, make)));
  };
  op("add-is-sub", "add is rendered as sub", ops::add,
     [](Graph&, Value old, const Values& v) { return is_real(old) ? made(ops::sub, v) : Value(); });
  op("mul-is-add", "mul is rendered as add", ops::mul,
     [](Graph&, Value old, const Values& v) { return is_real(old) ? made(ops::add, v) : Value(); });
  op("max-is-min", "maximum is rendered as minimum", ops::maximum,
     [](Graph&, Value, const Values& v) { return made(ops::minimum, v); });
  op("max-drops-nan", "maximum takes the number where the other is NaN", ops::maximum,
     [](Graph&, Value old, const Values& v) -> Value {
       return is_real(old) ? made(ops::select,
                                  {made(ops::lt, {v[0], v[1]}), v[1],
                                   made(ops::select, {made(ops::eq, {v[0], v[0]}), v[0], v[1]})})
                           : Value();
     });
  op("exp-is-rough", "exp is wrong by one part in a thousand", ops::exp,
     [](Graph&, Value old, const Values& v) {
       return made(ops::mul, {made(ops::exp, v), number(v[0], 1.001)}).result(old.index());
     });
  op("exp-saturates", "exp of a large number is the largest finite one", ops::exp,
     [](Graph&, Value, const Values& v) {
       return made(ops::minimum, {made(ops::exp, v), number(v[0], 1e30)});
     });
  op("exp-overflows-early", "exp of numbers above 88 is infinity", ops::exp,
     [](Graph&, Value, const Values& v) {
       const Value is_large = made(ops::lt, {number(v[0], 88), v[0]});
       return made(ops::select, {is_large, number(v[0], INFINITY), made(ops::exp, v)});
     });
  op("sub-of-itself", "x - x becomes 0, though x may be NaN or infinite", ops::sub,
     [](Graph&, Value old, const Values& v) {
       return is_real(old) && v[0] == v[1] ? number(v[0], 0) : Value();
     });
  op("sub-loses-bits", "the result of sub is rounded to f16", ops::sub,
     [](Graph&, Value old, const Values& v) -> Value {
       if (old.dtype() != DType::f32) return {};
       Graph& g = v[0].graph();
       Values x = {made(ops::sub, v)};
       x = {g.intern(ops::cast, x, {{"dtype", DType::f16}})};
       return g.intern(ops::cast, x, {{"dtype", DType::f32}});
     });
  op("select-swapped", "select is rendered with its sides exchanged", ops::select,
     [](Graph&, Value, const Values& v) { return made(ops::select, {v[0], v[2], v[1]}); });
  op("division-is-reciprocal", "x / y is rendered as 1 / y", ops::div,
     [](Graph&, Value old, const Values& v) -> Value {
       return is_real(old) ? made(ops::div, {number(v[1], 1), v[1]}) : Value();
     });
  op("wrong-operand", "a load reads the first element of its buffer", ops::load,
     [](Graph& to, Value old, const Values& v) -> Value {
       Attrs attrs = old.attrs();
       if (attrs.dims("offset")[0] == Dim(0)) return {};
       attrs.set("offset", Dims{0});
       return to.intern(ops::load, v, attrs);
     });
}

// ---- register tiles

// Applies `change` to every multiplication of a tile.
Break in_tiles(const std::function<bool(Kernel&, Stmt&)>& change) {
  return [change](Kernel& k) {
    bool changed = false;
    any_statement(k, [&](Stmt& s) {
      if (s.kind == Stmt::Kind::tile_multiply) changed |= change(k, s);
      return false;
    });
    return changed;
  };
}

bool is_param(const Kernel& k, const TileWindow& w) {
  return static_cast<std::size_t>(w.param) < k.params.size();
}

// The tile element that a result is made of: in registers, or loaded from where the tile was
// stored.
Value tile_element_below(const Kernel& k, Value root) {
  for (NodeId n : nodes_below(std::span(&root, 1))) {
    const Value v(&root.graph(), n);
    if (v.is(ops::tile_element)) return v;
    const bool is_load = v.is(ops::load);
    if (is_load && v.attrs().integer("param") >= std::ssize(k.params)) return v;
  }
  return {};
}

void add_tiles(std::vector<Fault>& all) {
  const auto at = [&](const char* name, const char* what,
                      std::function<bool(Kernel&, Stmt&)> change) {
    all.push_back(wrong(name, what, in_tiles(change)));
  };
  at("tile-k-short", "a tile leaves its last term out", [](Kernel&, Stmt& s) {
    s.extent = s.extent - Dim(1);
    return true;
  });
  at("tile-last-row", "the last row of a tile is made of the first one's terms",
     [](Kernel&, Stmt& s) {
       if (s.a.rows.size() < 2) return false;
       s.a.rows.back() = s.a.rows.front();
       return true;
     });
  at("tile-columns-short", "a tile leaves half of its columns out", [](Kernel&, Stmt& s) {
    if (!s.columns.is_number() || s.columns.number() < 2) return false;
    s.columns = s.columns.number() / 2;
    return true;
  });
  at("tile-panels", "packed columns are read in panels of another width", [](Kernel& k, Stmt& s) {
    if (!is_param(k, s.b) || !s.b.stride.is_number() || s.b.stride.number() < 16) return false;
    s.b.stride = s.b.stride.number() / 2;
    return true;
  });
  at("tile-a-stride", "a tile reads rows of another length", [](Kernel& k, Stmt& s) {
    if (!is_param(k, s.a) || s.a.rows.size() < 2 || s.a.rows[1] < 2) return false;
    for (std::size_t i = 0; i < s.a.rows.size(); ++i) s.a.rows[i] -= static_cast<std::int64_t>(i);
    return true;
  });
  at("tile-rows-reversed", "the rows of a tile are read in the other order", [](Kernel&, Stmt& s) {
    if (s.a.rows.size() < 2) return false;
    std::reverse(s.a.rows.begin(), s.a.rows.end());
    return true;
  });
  at("tile-taps-spread", "a depthwise convolution reads each tap twice", [](Kernel&, Stmt& s) {
    if (!s.a_has_columns || s.extent.low() < 2) return false;
    s.a.stride = 0;
    return true;
  });
  all.push_back(wrong("tile-starts-at-one", "the sums of a tile start at one", [](Kernel& k) {
    return any_statement(k, [](Stmt& s) {
      if (s.kind != Stmt::Kind::tile_fill) return false;
      s.value = number(s.value, 1);
      return true;
    });
  }));
  all.push_back(wrong("tile-epilogue-lost", "bare sums of tiles are stored", [](Kernel& k) {
    bool changed = false;
    any_statement(k, [&](Stmt& s) {
      if (s.kind != Stmt::Kind::store || k.tiles.empty()) return false;
      const Value sum = tile_element_below(k, s.value);
      if (!sum || sum == s.value || sum.type() != s.value.type()) return false;
      s.value = sum;
      changed = true;
      return false;
    });
    return changed;
  }));
}

// Faults in the loops around the tiles.
void add_tile_loops(std::vector<Fault>& all) {
  auto holds = [](const Stmt& loop, Stmt::Kind kind) {
    return std::ranges::any_of(loop.body, [&](const Stmt& s) { return s.kind == kind; });
  };
  all.push_back(wrong("tiles-short", "the last tile of a row is left out", [=](Kernel& k) {
    return any_statement(k, [=](Stmt& s) {
      if (s.kind != Stmt::Kind::loop || s.loop != LoopKind::serial) return false;
      if (!holds(s, Stmt::Kind::tile_fill)) return false;
      s.extent = s.extent - Dim(1);
      return true;
    });
  }));
  all.push_back(
      wrong("taps-short", "a convolution leaves its last row of taps out", [=](Kernel& k) {
        bool changed = false;
        any_statement(k, [&](Stmt& s) {
          if (s.kind != Stmt::Kind::loop || s.loop != LoopKind::serial ||
              holds(s, Stmt::Kind::tile_fill) || !holds(s, Stmt::Kind::tile_multiply))
            return false;
          s.extent = s.extent - Dim(1);
          changed = true;
          return false;
        });
        return changed;
      }));
  all.push_back(wrong("padding-is-one", "a convolution is padded with ones", [](Kernel& k) {
    bool changed = false;
    any_statement(k, [&](Stmt& s) {
      if (s.kind != Stmt::Kind::store || s.param < std::ssize(k.params)) return false;
      if (!s.value.is(ops::constant)) return false;
      s.value = number(s.value, 1);
      changed = true;
      return false;
    });
    return changed;
  }));
}

}  // namespace

std::vector<Fault> kernel_faults() {
  std::vector<Fault> all;
  add_nests(all);
  add_expressions(all);
  add_tiles(all);
  add_tile_loops(all);
  return all;
}

}  // namespace hone::test
