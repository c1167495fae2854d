#include "schedule/group.h"

#include <cstring>

#include "ops/ops.h"
#include "schedule/views.h"

namespace hone {

bool is_uniform(const Array& a) {
  constexpr std::int64_t most = 4096;
  if (a.count() == 0 || a.count() > most) return a.count() == 0;
  std::size_t size = static_cast<std::size_t>(byte_size(a.dtype()));
  std::span<const std::byte> bytes = a.bytes();
  return std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0;
}

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

// Values that control nodes or the results read must be in memory, also when groups repeat them.
std::vector<bool> find_read_values(const Function& f, const Grouping& g) {
  std::vector<bool> read(f.graph().node_count(), false);
  for (const Function::Result& r : f.results()) read[r.value.node()] = true;
  for (NodeId n : g.order)
    if (g.roles[n] == Role::control)
      for (const Value& v : f.graph().operands(n)) read[v.node()] = true;
  return read;
}

bool is_group(Role role, bool read) {
  return role == Role::computed || role == Role::control ||
         (read && (role == Role::inlined || role == Role::cloned));
}

}  // namespace

Grouping group(const Function& f, const GroupOptions&) {
  Grouping g;
  g.order = live_nodes(f);
  g.roles.assign(f.graph().node_count(), Role::dead);
  g.first_value.assign(f.graph().node_count(), Grouping::none);
  g.group_of.assign(f.graph().node_count(), Grouping::none);
  RoleFinder(f, g).run();
  std::vector<bool> weights = find_weight_nodes(f, g), read = find_read_values(f, g);
  for (NodeId n : g.order) {
    g.first_value[n] = g.value_count;
    g.value_count += static_cast<std::uint32_t>(f.graph().result_count(n));
    if (!is_group(g.roles[n], read[n])) continue;
    g.group_of[n] = static_cast<std::uint32_t>(g.groups.size());
    g.groups.push_back({{n}, weights[n], g.roles[n] == Role::control});
  }
  return g;
}

}  // namespace hone
