#include "schedule/roles.h"

#include <cstring>
#include <set>

#include "ops/ops.h"
#include "schedule/appended.h"
#include "schedule/views.h"

namespace hone {

namespace {

// If all elements are equal, the number is written into the code.
bool is_uniform(const Array& a) {
  constexpr std::int64_t most = 4096;
  if (a.count() == 0 || a.count() > most) return a.count() == 0;
  std::size_t size = static_cast<std::size_t>(byte_size(a.dtype()));
  std::span<const std::byte> bytes = a.bytes();
  return std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0;
}

class RoleFinder {
 public:
  RoleFinder(const Function& f, const std::vector<bool>& weights, bool assemble, Grouping& out)
      : function_(f), graph_(f.graph()), weights_(weights), assemble_(assemble), out_(out) {
    dense_.resize(graph_.node_count());
    uses_.resize(graph_.node_count());
    for (NodeId n : out.order)
      for (const Value& v : graph_.operands(n)) ++uses_[v.node()];
    for (const Function::Result& r : f.results()) ++uses_[r.value.node()];
    find_mask_nodes(f);
    for (std::size_t i = 0; i < f.results().size(); ++i)
      if (f.results()[i].stored_to && assemble && is_appended(f, i))
        appended_.insert(f.result(i).node());
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
    if (&op == &ops::replay) out_.has_replays = true;
    if (maps_elements(op) && is_for_masks_[n] && operands_are(n, Role::inlined))
      return Role::inlined;
    if (op.kind != OpKind::movement) return Role::computed;
    if (&op == &ops::concat && assemble_ && !weights_[n] &&
        (appended_.contains(n) || is_worth_assembling(n)))
      return Role::assembled;
    if (operands_are(n, Role::inlined)) return Role::inlined;
    if (&op == &ops::broadcast || is_list_of_places(n)) return Role::cloned;
    bool moves_cloned = operands_are(n, Role::cloned) && graph_.operands(n).size() == 1;
    if (moves_cloned) return Role::cloned;
    if (is_view(n)) return Role::view;
    return assemble_ && !weights_[n] && can_be_written_in_order(n) ? Role::assembled
                                                                   : Role::computed;
  }

  // A reshape of transposed results of an attention or contraction, such as heads that are
  // concatenated: they have no other reader, so they are written directly in the reshape's layout.
  bool can_be_written_in_order(NodeId n) const {
    if (&graph_.op(n) != &ops::reshape) return false;
    std::optional<Layout> layout = dense_layout(graph_.type(n).shape);
    do {
      layout = operand_layout(graph_, n, *layout);
      n = graph_.operands(n)[0].node();
      if (!layout || uses_[n] != 1) return false;
    } while (out_.roles[n] == Role::view);
    const Op& op = graph_.op(n);
    return out_.roles[n] == Role::computed &&
           (op.kind == OpKind::contraction || &op == &ops::attention);
  }

  // A mask computed from positions alone is repeated where it is needed, unless it is small:
  // attention derives from it which keys it may skip.
  void find_mask_nodes(const Function& f) {
    is_for_masks_.assign(graph_.node_count(), true);
    for (const Function::Result& r : f.results()) is_for_masks_[r.value.node()] = false;
    for (auto n = out_.order.rbegin(); n != out_.order.rend(); ++n) {
      const Op& op = graph_.op(*n);
      const bool passes_on =
          is_for_masks_[*n] && (maps_elements(op) || op.kind == OpKind::movement);
      const std::span<const Value> operands = graph_.operands(*n);
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (!passes_on && !is_large_mask(*n, i)) is_for_masks_[operands[i].node()] = false;
    }
  }

  bool is_large_mask(NodeId reader, std::size_t operand) const {
    constexpr std::size_t mask_operand = 3;
    constexpr std::int64_t small = 1 << 20;
    if (&graph_.op(reader) != &ops::attention || operand != mask_operand) return false;
    const Type& t = graph_.operands(reader)[operand].type();
    return t.dtype == DType::b1 && (!t.shape.is_static() || t.shape.count().number() >= small);
  }

  bool operands_are(NodeId n, Role role) const {
    for (const Value& v : graph_.operands(n))
      if (out_.roles[v.node()] != role) return false;
    return true;
  }

  // A short list of integers, such as the start of a slice: its readers take them one by one.
  bool is_list_of_places(NodeId n) const {
    constexpr std::int64_t most = 8;
    const Type& t = graph_.type(n);
    return &graph_.op(n) == &ops::concat && !weights_[n] && is_integer(t.dtype) &&
           t.shape.is_static() && t.shape.count().number() <= most;
  }

  // True if at least half of the operands are computed in this function, so that they can be
  // written in place.
  bool is_worth_assembling(NodeId n) const {
    constexpr std::int64_t tiny = 16;
    const Shape& shape = graph_.type(n).shape;
    if (shape.is_static() && shape.count().number() <= tiny) return false;
    std::size_t made = 0;
    for (const Value& v : graph_.operands(n)) made += is_made_here(v.node());
    return made > 0 && made * 2 >= graph_.operands(n).size();
  }

  bool is_made_here(NodeId n) const {
    while (out_.roles[n] == Role::view && &graph_.op(n) != &ops::slice)
      n = graph_.operands(n)[0].node();
    Role role = out_.roles[n];
    return role == Role::computed || role == Role::control || role == Role::assembled;
  }

  // Assumes that every value with memory of its own lies there as memory_layout() says.
  bool is_view(NodeId n) {
    if (graph_.operands(n).size() != 1) return false;
    const Value& v = graph_.operands(n)[0];
    Role role = out_.roles[v.node()];
    if (role == Role::inlined || role == Role::cloned) return false;
    Layout from = role == Role::view ? *dense_[v.node()] : memory_layout(function_, v);
    dense_[n] = view_layout(graph_, n, from);
    return dense_[n].has_value();
  }

  const Function& function_;
  const Graph& graph_;
  const std::vector<bool>& weights_;
  const bool assemble_;
  std::set<NodeId> appended_;  // concats of results that continue a parameter
  Grouping& out_;
  std::vector<std::optional<Layout>> dense_;  // per view node
  std::vector<std::uint32_t> uses_;           // per node
  std::vector<bool> is_for_masks_;            // per node: only attention needs it, for a large mask
};

// True if the value depends only on weights: it is computed before the first run.
bool depends_on_weights_alone(const Graph& graph, NodeId n, const std::vector<bool>& weights) {
  for (std::size_t i = 0; i < graph.result_count(n); ++i)
    if (!graph.type(n, i).is_tensor() || !graph.type(n, i).shape.is_static()) return false;
  for (const Attrs::Entry& e : graph.attrs(n).entries())
    if (auto* dims = std::get_if<Dims>(&e.second))
      for (const Dim& d : *dims)
        if (!d.is_number()) return false;
  for (const Value& v : graph.operands(n))
    if (!weights[v.node()]) return false;
  return true;
}

}  // namespace

void find_roles(const Function& f, const std::vector<bool>& weights, bool assemble, Grouping& g) {
  g.roles.assign(f.graph().node_count(), Role::dead);
  RoleFinder(f, weights, assemble, g).run();
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
    if (g.roles[n] == Role::control || g.roles[n] == Role::assembled)
      for (const Value& v : f.graph().operands(n)) read[v.node()] = true;
  return read;
}

}  // namespace hone
