#include "import/onnx/node/known.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ops/ops.h"

namespace hone::onnx {

namespace {

constexpr std::size_t most_nodes = 1000;
constexpr std::int64_t most_elements = 1 << 16;

bool is_small(const hone::Graph& graph, NodeId n) {
  for (std::size_t i = 0; i < graph.result_count(n); ++i) {
    const Type& t = graph.type(n, i);
    if (!t.is_tensor() || !t.shape.is_static()) return false;
    std::optional<std::int64_t> count = t.shape.count().as_number();
    if (!count || *count > most_elements) return false;
  }
  return true;
}

std::vector<Wide> no_call(const Function&, std::vector<Wide>) {
  throw InternalError("import: a node with a body cannot be evaluated");
}

struct OpenSize {};  // a size is not a number

// Evaluates nodes, operands first; a composite has the values of its expansion.
class Evaluator {
 public:
  explicit Evaluator(hone::Graph& graph) : graph_(graph) {}

  std::optional<Array> operator()(Value root) {
    open_.push_back(root.node());
    while (!open_.empty()) {
      if (done_.size() > most_nodes || open_.size() > most_nodes) return std::nullopt;
      const NodeId n = open_.back();
      if (done_.contains(n)) {
        open_.pop_back();
      } else if (!can_evaluate(n)) {
        return std::nullopt;
      } else if (operands_are_done(n)) {
        open_.pop_back();
        try {
          evaluate(n);
        } catch (const OpenSize&) {
          return std::nullopt;
        }
      }
    }
    return narrow(*value(root));
  }

 private:
  bool can_evaluate(NodeId n) const {
    const Op& op = graph_.op(n);
    return op.pure && &op != &ops::param && op.kind != OpKind::control && is_small(graph_, n);
  }

  // Queues the operands that are not evaluated.
  bool operands_are_done(NodeId n) {
    if (graph_.op(n).expand && !expansions_.contains(n)) expand(n);
    auto it = expansions_.find(n);
    const std::span<const Value> needed =
        it == expansions_.end() ? graph_.operands(n) : std::span<const Value>(it->second);
    bool all = true;
    for (const Value& v : needed)
      if (!done_.contains(v.node())) open_.push_back(v.node()), all = false;
    return all;
  }

  void expand(NodeId n) {
    const Values operands(graph_.operands(n).begin(), graph_.operands(n).end());
    const Attrs attrs = graph_.attrs(n);
    const std::vector<Type> types = graph_.result_types(n);
    expansions_[n] = graph_.op(n).expand({graph_.op(n), operands, attrs, graph_, types});
  }

  void evaluate(NodeId n) {
    std::vector<Wide> results;
    if (auto it = expansions_.find(n); it != expansions_.end()) {
      for (const Value& v : it->second) results.push_back(*value(v));
    } else {
      std::vector<const Wide*> inputs;
      for (const Value& v : graph_.operands(n)) inputs.push_back(value(v));
      const std::vector<Type> types = graph_.result_types(n);
      const std::function<std::int64_t(const Dim&)> size = [](const Dim& d) {
        if (!d.is_number()) throw OpenSize();
        return d.number();
      };
      const std::function<std::vector<Wide>(const Function&, std::vector<Wide>)> call = no_call;
      results = graph_.op(n).eval({graph_.attrs(n), inputs, types, size, call});
      for (Wide& w : results)
        if (w.is_real()) round_to_dtype(w);
    }
    done_.emplace(n, std::move(results));
  }

  const Wide* value(Value v) const { return &done_.at(v.node())[v.index()]; }

  hone::Graph& graph_;
  std::vector<NodeId> open_;
  std::unordered_map<NodeId, std::vector<Wide>> done_;
  std::unordered_map<NodeId, Values> expansions_;
};

}  // namespace

std::optional<Array> known_array(Value v) {
  if (v.is(ops::constant)) return v.attrs().get<Array>("value");
  return Evaluator(v.graph())(v);
}

Values params_of(Value root) {
  Values open = {root}, out;
  std::unordered_set<NodeId> met = {root.node()};
  while (!open.empty() && met.size() <= most_nodes) {
    const Value v = open.back();
    open.pop_back();
    if (v.is(ops::param)) out.push_back(v);
    for (const Value& o : v.operands())
      if (met.insert(o.node()).second) open.push_back(o);
  }
  return out;
}

}  // namespace hone::onnx
