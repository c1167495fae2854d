#include "verify/kernel/edges.h"

#include "ops/eval.h"
#include "ops/expand.h"
#include "ops/ops.h"
#include "ref/enclosure_rule.h"

namespace hone {

namespace {

struct Ends {
  double largest, before;  // and the number before it
  double least;
};

Ends ends_of(DType t) {
  if (is_small(t)) {
    const int largest = small_float(t).largest;
    return {small_to_f64(t, static_cast<std::uint8_t>(largest)),
            small_to_f64(t, static_cast<std::uint8_t>(largest - 1)), small_to_f64(t, 1)};
  }
  const Precision p = precision_of(t);
  return {p.most, p.most - p.eps * (p.most / (2 - p.eps)), p.tiny};
}

// Numbers that round to the limits of the dtype, and the ties next to them.
std::vector<double> edges_of_cast(DType to) {
  if (is_float(to)) {
    const auto [largest, before, least] = ends_of(to);
    return {largest, largest + (largest - before) / 2, before, least, least / 2, 1.5 * least};
  }
  if (to == DType::b1 || to == DType::text) return {0};
  std::vector<double> out;
  for (const double end : {integer_to_real(to, lowest_of(to)), integer_to_real(to, highest_of(to))})
    for (const double step : {-1.0, -0.5, 0.0, 0.5, 1.0}) out.push_back(end + step);
  return out;
}

bool is_local(const Graph& graph, NodeId n) {
  const OpKind kind = graph.op(n).kind;
  return kind == OpKind::leaf || kind == OpKind::elementwise || kind == OpKind::movement;
}

void add_edges(const Graph& graph, NodeId n, std::vector<double>& out) {
  const Op& op = graph.op(n);
  const std::span<const double> own = op.edges;
  out.insert(out.end(), own.begin(), own.end());
  if (&op != &ops::cast) return;
  const std::vector<double> ends = edges_of_cast(graph.type(n, 0).dtype);
  out.insert(out.end(), ends.begin(), ends.end());
}

// Whether the result has the numbers of its operands, except for signs and rounding.
bool passes_on(const Graph& graph, NodeId n) {
  const Op& op = graph.op(n);
  return op.kind == OpKind::movement || &op == &ops::neg || &op == &ops::abs ||
         (&op == &ops::cast && is_float(graph.type(n, 0).dtype));
}

}  // namespace

std::vector<std::vector<double>> edges_of_params(const Function& given) {
  std::vector<std::vector<double>> out(given.params().size());
  // A composite states its own edges; its expansion shows whether it sums.
  const Function core = expand_composites(given);
  for (NodeId n : live_nodes(core))
    if (!is_local(core.graph(), n)) return out;
  const Graph& graph = given.graph();
  const std::vector<NodeId> order = live_nodes(given);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!is_float(given.param(i).dtype())) continue;
    std::vector<bool> holds(graph.node_count(), false);  // the parameter's numbers
    holds[given.param(i).node()] = true;
    for (NodeId n : order)
      for (const Value& v : graph.operands(n)) {
        if (!holds[v.node()]) continue;
        add_edges(graph, n, out[i]);
        holds[n] = holds[n] || passes_on(graph, n);
      }
  }
  return out;
}

}  // namespace hone
