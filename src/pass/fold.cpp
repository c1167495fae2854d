#include "pass/fold.h"

#include "ops/ops.h"
#include "pass/rewrite.h"

namespace hone {

namespace {

constexpr std::int64_t most_bytes = 64 << 10;
constexpr std::int64_t most_window_bytes = 256;
constexpr std::int64_t most_work = 1 << 22;  // approximate multiply-adds: the interpreter is slow

std::optional<std::int64_t> bytes_of(const Type& t) {
  if (!t.is_tensor() || !t.shape.is_static()) return std::nullopt;
  return byte_count(t).as_number();
}

bool is_small(const Type& t) {
  std::optional<std::int64_t> n = bytes_of(t);
  return n && *n <= most_bytes;
}

bool is_tiny(const Type& t) {
  std::optional<std::int64_t> n = bytes_of(t);
  return n && *n <= most_window_bytes;
}

// Contractions and windows do more work than their result size suggests.
bool is_cheap(const Graph& graph, NodeId n) {
  double work = 1;  // windows over constants may be larger than any memory
  for (const Value& v : graph.operands(n))
    work *= static_cast<double>(std::max<std::int64_t>(1, v.shape().count().number()));
  const Op& op = graph.op(n);
  return (op.kind != OpKind::contraction && op.kind != OpKind::reduction) || work <= most_work;
}

// Whether the operation is only a window over its operand, which is free.
bool is_window(const Op& op) {
  return &op == &ops::broadcast || &op == &ops::transpose || &op == &ops::slice ||
         &op == &ops::reshape;
}

// A constant, or windows over one: cheap to evaluate. A window whose size is not fixed may be
// empty, but still cannot be evaluated.
bool is_known(Value v) {
  for (; is_window(v.op()); v = v.operand(0))
    if (!v.shape().is_static()) return false;
  return v.is(ops::constant);
}

bool folds(const Graph& graph, NodeId n) {
  const Op& op = graph.op(n);
  if (!op.pure || !op.eval || !op.is_core() || op.kind == OpKind::control ||
      op.kind == OpKind::leaf || &op == &ops::broadcast || &op == &ops::iota)
    return false;
  for (const Value& v : graph.operands(n))
    if (!is_known(v) || !is_small(v.type())) return false;
  if (is_window(op) && !is_tiny(graph.type(n))) return false;
  for (std::size_t i = 0; i < graph.result_count(n); ++i)
    if (!is_small(graph.type(n, i))) return false;
  return is_cheap(graph, n);
}

std::int64_t static_size(const Dim& d) { return d.number(); }

std::vector<Wide> no_call(const Function&, std::vector<Wide>) {
  throw InternalError("fold: a node with a body is not evaluated");
}

std::vector<Wide> evaluate(const Graph& graph, NodeId n, std::span<const Wide* const> inputs) {
  std::vector<Type> types = graph.result_types(n);
  static const std::function<std::int64_t(const Dim&)> size = static_size;
  static const std::function<std::vector<Wide>(const Function&, std::vector<Wide>)> call = no_call;
  return graph.op(n).eval({graph.attrs(n), inputs, types, size, call});
}

// The full value of a constant or of windows over one.
Wide value_of(Value v) {
  Values chain;
  for (; is_window(v.op()); v = v.operand(0)) chain.push_back(v);
  Wide w = widen(v.attrs().get<Array>("value"));
  for (std::size_t i = chain.size(); i-- > 0;) {
    const Wide* input[] = {&w};
    w = evaluate(v.graph(), chain[i].node(), input)[0];
  }
  return w;
}

Values folded(const Graph& graph, NodeId n, std::span<const Value> operands, Function& to) {
  std::vector<Wide> values;
  for (const Value& v : operands) values.push_back(value_of(v));
  std::vector<const Wide*> inputs;
  for (const Wide& w : values) inputs.push_back(&w);
  Values out;
  for (const Wide& w : evaluate(graph, n, inputs)) out.push_back(constant(to.graph(), narrow(w)));
  return out;
}

bool folds_anything(const Function& f) {
  for (NodeId n : live_nodes(f))
    if (folds(f.graph(), n)) return true;
  return false;
}

}  // namespace

Function fold(const Function& f) {
  return for_bodies_too(f, [](const Function& g) {
    if (!folds_anything(g)) return g;
    return transform(g, [&](NodeId n, Copier& copier, Function& to) -> Values {
      const Graph& from = g.graph();
      if (from.operands(n).empty()) return {};
      Values operands;
      for (const Value& v : from.operands(n)) operands.push_back(copier(v));
      for (const Value& v : operands)
        if (!is_known(v)) return {};
      // Built in the new graph: the operands may be constants only there.
      Value made =
          to.graph().intern_typed(from.op(n), operands, from.attrs(n), from.result_types(n));
      if (!folds(to.graph(), made.node())) return {};
      return folded(to.graph(), made.node(), operands, to);
    });
  });
}

}  // namespace hone
