// Wrong kernels: a kernel is broken after it was chosen and before it becomes code, as a mistake of
// lowering or of code generation would.
#include <algorithm>
#include <unordered_map>

#include "ops/ops.h"
#include "test/fault/fault.h"

namespace hone::test {

namespace {

using Break = std::function<bool(Kernel&)>;

Fault wrong(std::string name, std::string what, Break change) {
  Fault f;
  f.name = "kernel-" + std::move(name);
  f.what = std::move(what);
  f.break_kernel = std::move(change);
  return f;
}

// ---- loop nests

// Every statement, also of the hole bodies of skeletons. Stops where f says true.
bool any_statement(Block& block, const std::function<bool(Stmt&)>& f) {
  for (Stmt& s : block)
    if (f(s) || any_statement(s.body, f)) return true;
  return false;
}

bool any_statement(Kernel& k, const std::function<bool(Stmt&)>& f) {
  if (auto* n = std::get_if<Nest>(&k.body)) return any_statement(n->body, f);
  if (auto* c = std::get_if<Contraction>(&k.body)) return any_statement(c->epilogue.stores, f);
  return any_statement(std::get<Convolution>(k.body).epilogue.stores, f);
}

std::shared_ptr<Graph>& graph_of(Kernel& k) {
  return std::visit([](auto& body) -> std::shared_ptr<Graph>& { return body.graph; }, k.body);
}

// Expressions, rebuilt in a graph of their own with some nodes replaced.
class Rebuild {
 public:
  using Replace = std::function<Value(Graph& to, Value old, const Values& operands)>;
  Rebuild(std::shared_ptr<Graph> to, Replace replace)
      : to_(std::move(to)), replace_(std::move(replace)) {}

  Value operator()(Value v) {
    if (!v) return v;
    if (auto it = done_.find(v); it != done_.end()) return it->second;
    Values operands;
    for (const Value& o : v.operands()) operands.push_back((*this)(o));
    Value made = replace_(*to_, v, operands);
    if (made) {
      ++count;
      HONE_ASSERT(made.type() == v.type(), "a planted fault must keep types");
    } else {
      std::vector<Type> types = v.graph().result_types(v.node());
      made = to_->intern_typed(v.op(), operands, v.attrs(), types);
    }
    return done_[v] = made.result(v.index());
  }

  int count = 0;

 private:
  std::shared_ptr<Graph> to_;
  Replace replace_;
  std::unordered_map<Value, Value, ValueHash> done_;
};

void rebuild(Block& block, Rebuild& f) {
  for (Stmt& s : block) {
    s.value = f(s.value);
    s.condition = f(s.condition);
    rebuild(s.body, f);
  }
}

void rebuild(Hole& h, Rebuild& f) {
  h.value = f(h.value);
  rebuild(h.stores, f);
}

bool rebuild(Kernel& k, const Rebuild::Replace& replace) {
  auto to = std::make_shared<Graph>();
  Rebuild f(to, replace);
  if (auto* n = std::get_if<Nest>(&k.body)) {
    rebuild(n->body, f);
  } else if (auto* c = std::get_if<Contraction>(&k.body)) {
    for (Hole* h : {&c->a, &c->b, &c->epilogue}) rebuild(*h, f);
  } else {
    for (Hole* h : {&std::get<Convolution>(k.body).input, &std::get<Convolution>(k.body).epilogue})
      rebuild(*h, f);
  }
  graph_of(k) = to;
  return f.count > 0;
}

Break replacing(const Op& op, const Rebuild::Replace& make) {
  return [&op, make](Kernel& k) {
    return rebuild(k, [&](Graph& to, Value old, const Values& operands) -> Value {
      return old.is(op) ? make(to, old, operands) : Value();
    });
  };
}

Value number(Value like, double x) { return scalar(like.graph(), x, like.dtype()); }
Value made(const Op& op, const Values& v) { return v[0].graph().intern(op, v, {}); }

bool is_real(Value v) { return is_float(v.dtype()); }

// The last loop of a kind that has more than one round.
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
  const auto op = [&](const char* name, const char* what, const Op& o, Rebuild::Replace make) {
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

// ---- skeletons

template <class Body>
Break in(const std::function<bool(Body&)>& change) {
  return [change](Kernel& k) {
    Body* body = std::get_if<Body>(&k.body);
    return body && change(*body);
  };
}

void add_contractions(std::vector<Fault>& all) {
  const auto at = [&](const char* name, const char* what,
                      std::function<bool(Contraction&)> change) {
    all.push_back(wrong(name, what, in<Contraction>(change)));
  };
  at("dot-k-short", "a contraction leaves its last term out", [](Contraction& c) {
    c.k = c.k - Dim(1);
    return true;
  });
  at("dot-rows-short", "a contraction leaves its last row out", [](Contraction& c) {
    if (c.m.low() < 2) return false;
    c.m = c.m - Dim(1);
    return true;
  });
  at("dot-columns-short", "a contraction leaves its last column out", [](Contraction& c) {
    c.n = c.n - Dim(1);
    return true;
  });
  at("dot-epilogue-lost", "a contraction stores bare sums", [](Contraction& c) {
    bool changed = false;
    any_statement(c.epilogue.stores, [&](Stmt& s) {
      if (s.kind != Stmt::Kind::store || s.value.is(ops::reg)) return false;
      Value sum = c.graph->intern(ops::reg, {}, {{"index", 0}, {"dtype", s.value.dtype()}});
      if (sum.type() != s.value.type()) return false;
      s.value = sum;
      changed = true;
      return false;
    });
    return changed;
  });
  at("dot-panels", "packed columns are read in panels of another width", [](Contraction& c) {
    if (c.packed_b < 0 || c.block < 32) return false;
    c.block /= 2;
    c.chunk_columns = std::max<std::int64_t>(c.block, c.chunk_columns / 2);
    return true;
  });
  at("dot-a-stride", "a contraction reads rows of another length", [](Contraction& c) {
    if (c.read_a != Contraction::ReadA::in_place || c.a_row_stride < 2) return false;
    c.a_row_stride -= 1;
    return true;
  });
}

void add_convolutions(std::vector<Fault>& all) {
  const auto at = [&](const char* name, const char* what,
                      std::function<bool(Convolution&)> change) {
    all.push_back(wrong(name, what, in<Convolution>(change)));
  };
  at("conv-pads", "a convolution starts one pixel later", [](Convolution& c) {
    if (c.pads_low.empty() || c.pads_low[0].low() < 1) return false;
    c.pads_low[0] = c.pads_low[0] - Dim(1);
    c.in_place_strides.clear();
    return true;
  });
  at("conv-window-short", "a convolution leaves its last row of taps out", [](Convolution& c) {
    if (c.window[0] < 2) return false;
    c.window[0] -= 1;
    return true;
  });
  at("conv-dilated", "a convolution spreads its taps", [](Convolution& c) {
    if (c.window[0] < 2) return false;
    c.dilations[0] += 1;
    c.in_place_strides.clear();
    return true;
  });
  at("conv-out-short", "a convolution leaves its last row of pixels out", [](Convolution& c) {
    if (c.out_size[0].low() < 2) return false;
    c.out_size[0] = c.out_size[0] - Dim(1);
    return true;
  });
  at("conv-groups", "a convolution steps through its input by other strides", [](Convolution& c) {
    if (c.strides[0] != 1) return false;
    c.strides[0] = 2;
    c.in_place_strides.clear();
    return true;
  });
}

}  // namespace

std::vector<Fault> kernel_faults() {
  std::vector<Fault> all;
  add_nests(all);
  add_expressions(all);
  add_contractions(all);
  add_convolutions(all);
  return all;
}

}  // namespace hone::test
