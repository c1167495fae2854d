#include "schedule/roles.h"

#include "ops/ops.h"
#include "schedule/views.h"

namespace hone {

namespace {

class RoleFinder {
 public:
  RoleFinder(const Function& f, Grouping& out) : graph_(f.graph()), out_(out) {
    dense_.resize(graph_.node_count());
  }

  void run() {
    for (NodeId n : out_.order) out_.roles[n] = find(n);
  }

 private:
  Role find(NodeId n) {
    const Op& op = graph_.op(n);
    if (&op == &ops::param) return Role::param;
    if (&op == &ops::constant)
      return is_uniform(graph_.attrs(n).get<Array>("value")) ? Role::inlined : Role::constant;
    if (&op == &ops::dims || &op == &ops::iota) return Role::inlined;
    if (op.kind == OpKind::control || !op.pure) return Role::control;
    if (op.kind != OpKind::movement) return Role::computed;
    if (operands_are(n, Role::inlined)) return Role::inlined;
    if (&op == &ops::broadcast) return Role::cloned;
    bool moves_cloned = operands_are(n, Role::cloned) && graph_.operands(n).size() == 1;
    if (moves_cloned) return Role::cloned;
    return is_view(n) ? Role::view : Role::computed;
  }

  bool operands_are(NodeId n, Role role) const {
    for (const Value& v : graph_.operands(n))
      if (out_.roles[v.node()] != role) return false;
    return true;
  }

  // Assumes that whatever is in memory of its own is dense.
  bool is_view(NodeId n) {
    if (graph_.operands(n).size() != 1) return false;
    const Value& v = graph_.operands(n)[0];
    Role role = out_.roles[v.node()];
    if (role == Role::inlined || role == Role::cloned) return false;
    Layout from = role == Role::view ? *dense_[v.node()] : dense_layout(v.shape());
    dense_[n] = view_layout(graph_, n, from);
    return dense_[n].has_value();
  }

  const Graph& graph_;
  Grouping& out_;
  std::vector<std::optional<Layout>> dense_;  // per view node
};

// Weights alone decide the value: it is computed before the first run.
bool depends_on_weights_alone(const Graph& graph, NodeId n, const std::vector<bool>& weights) {
  for (std::size_t i = 0; i < graph.result_count(n); ++i)
    if (!graph.type(n, i).is_tensor() || !graph.type(n, i).shape.is_static()) return false;
  for (const Value& v : graph.operands(n))
    if (!weights[v.node()]) return false;
  return true;
}

}  // namespace

void find_roles(const Function& f, Grouping& g) {
  g.roles.assign(f.graph().node_count(), Role::dead);
  RoleFinder(f, g).run();
}

std::vector<bool> find_weight_nodes(const Function& f, const Grouping& g) {
  const Graph& graph = f.graph();
  std::vector<bool> weights(graph.node_count(), false);
  for (NodeId n : g.order) {
    const Op& op = graph.op(n);
    if (op.kind == OpKind::control || !op.pure || &op == &ops::param || &op == &ops::dims) continue;
    weights[n] = depends_on_weights_alone(graph, n, weights);
  }
  return weights;
}

std::vector<bool> find_read_nodes(const Function& f, const Grouping& g) {
  std::vector<bool> read(f.graph().node_count(), false);
  for (const Function::Result& r : f.results()) read[r.value.node()] = true;
  for (NodeId n : g.order)
    if (g.roles[n] == Role::control)
      for (const Value& v : f.graph().operands(n)) read[v.node()] = true;
  return read;
}

}  // namespace hone
