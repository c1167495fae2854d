#include "kernel/walk.h"

#include <algorithm>

#include "base/error.h"

namespace hone {

bool only_fetches(const Stmt& s) {
  if (s.kind == Stmt::Kind::fetch) return true;
  const bool is_around = s.kind == Stmt::Kind::loop || s.kind == Stmt::Kind::branch;
  return is_around && std::ranges::all_of(s.body, only_fetches) &&
         std::ranges::all_of(s.otherwise, only_fetches);
}

std::vector<Value> values_of(const Stmt& s) {
  std::vector<Value> out;
  if (s.value) out.push_back(s.value);
  if (s.condition) out.push_back(s.condition);
  return out;
}

Array in_registers(const Array& a) {
  return is_small(a.dtype()) ? Array(code_dtype(a.dtype()), a.dims(), a.storage()) : a;
}

const KernelMemory* memory_named(const Kernel& kernel, int param) {
  const int number = param - static_cast<int>(kernel.params.size());
  return number < 0 ? nullptr : &kernel.memory[static_cast<std::size_t>(number)];
}

void for_each_statement(const Block& block, const std::function<void(const Stmt&)>& visit) {
  for (const Stmt& s : block) {
    visit(s);
    for_each_statement(s.body, visit);
    for_each_statement(s.otherwise, visit);
  }
}

FreeNumbers free_numbers(const Kernel& kernel) {
  FreeNumbers out;
  for_each_statement(kernel.body, [&](const Stmt& s) {
    out.loop = std::max(out.loop, s.var + 1);
    out.reg = std::max(out.reg, s.reg + 1);
  });
  return out;
}

std::vector<Value> values_of(const Block& block) {
  std::vector<Value> out;
  for_each_statement(block, [&](const Stmt& s) {
    for (Value v : values_of(s)) out.push_back(v);
  });
  return out;
}

namespace {

const Dims* positions_in(const Graph& graph, NodeId n) {
  if (&graph.op(n) == &ops::load || &graph.op(n) == &ops::tile_element)
    return &graph.attrs(n).dims("offset");
  if (&graph.op(n) == &ops::dims) return &graph.attrs(n).dims("dims");
  return nullptr;
}

}  // namespace

bool for_each_dim(const Block& block, const std::function<bool(const Dim&)>& visit) {
  bool go_on = true;
  for_each_statement(block, [&](const Stmt& s) {
    for (const Dim& d :
         {s.extent, s.offset, s.columns, s.a.offset, s.a.stride, s.b.offset, s.b.stride})
      go_on = go_on && (d.is_number() || visit(d));
  });
  std::vector<Value> roots = values_of(block);
  for (NodeId n : nodes_below(roots)) {
    if (!go_on) return false;
    if (const Dims* list = positions_in(roots[0].graph(), n))
      for (const Dim& d : *list) go_on = go_on && visit(d);
  }
  return go_on;
}

Value Rewriter::operator()(Value root) {
  if (!root) return root;
  for (NodeId n : nodes_below(std::span(&root, 1)))
    if (!done_.contains(n)) done_[n] = copy(Value(&root.graph(), n));
  return done_.at(root.node());
}

Value Rewriter::copy(Value v) {
  Values operands;
  bool is_same = &v.graph() == &graph_;
  for (Value operand : v.operands()) {
    operands.push_back(done_.at(operand.node()));
    is_same = is_same && operands.back() == operand;
  }
  const auto copied = [&](const Attrs& attrs) {
    return is_same ? v : graph_.intern_typed(v.op(), operands, attrs, std::span(&v.type(), 1));
  };
  const Dims* list = positions_in(v.graph(), v.node());
  if (!list && !v.is(ops::reg)) return copied(v.attrs());
  Attrs attrs = v.attrs();
  if (list) {
    Dims replaced;
    for (const Dim& d : *list) replaced.push_back(replace(d, list_));
    is_same = is_same && replaced == *list;
    if (v.is(ops::dims)) return is_same ? v : dims_value(graph_, replaced, v.dtype(), {});
    attrs.set("offset", replaced);
  }
  if (v.is(ops::load) && !numbers_.memory.empty()) {
    is_same = false;
    attrs.set("param", std::int64_t{memory(static_cast<int>(attrs.integer("param")))});
  }
  if (v.is(ops::reg) && numbers_.registers > 0) {
    is_same = false;
    attrs.set("index", attrs.integer("index") + numbers_.registers);
  }
  return copied(attrs);
}

void Rewriter::operator()(Block& block) {
  for (Stmt& s : block) {
    if (is_loop(s)) s.var = loop_of((*this)(symbol_of(s))).value_or(s.var);
    if (s.reg >= 0) s.reg += numbers_.registers;
    s.param = memory(s.param);
    s.extent = (*this)(s.extent);
    s.offset = (*this)(s.offset);
    s.columns = (*this)(s.columns);
    for (TileWindow* w : {&s.a, &s.b}) {
      w->param = memory(w->param);
      w->offset = (*this)(w->offset);
      w->stride = (*this)(w->stride);
    }
    s.value = (*this)(s.value);
    s.condition = (*this)(s.condition);
    (*this)(s.body);
    (*this)(s.otherwise);
  }
}

void add_dependences(const Dim& d, Dependences& out) {
  if (d.is_number()) return;
  for (const Dim& s : d.symbols()) {
    if (auto v = loop_of(s)) out.loops.insert(*v);
    if (auto r = register_of(s)) out.registers.insert(*r);
  }
}

Dependences dependences(Value root) {
  Dependences out;
  const Graph& graph = root.graph();
  for (NodeId n : nodes_below(std::span(&root, 1))) {
    if (const Dims* list = positions_in(graph, n))
      for (const Dim& d : *list) add_dependences(d, out);
    if (&graph.op(n) == &ops::reg)
      out.registers.insert(static_cast<RegId>(graph.attrs(n).integer("index")));
  }
  return out;
}

std::string unknown_number(std::string_view what, std::string_view letter, std::int64_t n,
                           std::size_t count) {
  const std::string known = count == 0   ? "there is none"
                            : count == 1 ? cat("there is ", letter, "0 alone")
                                         : cat("there are ", letter, "0 to ", letter, count - 1);
  return cat("unknown ", what, " ", letter, n, "; ", known);
}

}  // namespace hone
