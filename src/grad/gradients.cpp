#include "grad/gradients.h"

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/function.h"
#include "ops/common.h"

namespace hone {

namespace {

class Differentiator {
 public:
  Differentiator(std::span<const Value> ys, std::span<const Value> xs) {
    for (const Value& x : xs) {
      if (!is_float(x.dtype()))
        throw UserError("gradient: the value is ", x.type(), ", expected a float dtype");
      stops_.insert(x);
    }
    for (const Value& y : ys) mark(y);
  }

  void run(std::span<const Value> ys, std::span<const Value> dys) {
    for (std::size_t i = 0; i < ys.size(); ++i) flow(ys[i], dys[i]);
    // Consumers have larger numbers than the node, except for parts of an expansion that existed
    // before: such a node is processed again with the gradients added since.
    while (!open_.empty()) {
      const NodeId n = open_.begin()->first;
      const std::map<std::uint32_t, Value> dy = std::move(open_.begin()->second);
      open_.erase(open_.begin());
      step(n, dy);
    }
  }

  Value of(const Value& x) const {
    const auto it = totals_.find(x);
    return it == totals_.end() ? constant_like(x, 0) : it->second;
  }

 private:
  // Whether the value depends on an x; marks all values below it, without recursion.
  bool mark(const Value& v) {
    graph_ = &v.graph();
    std::vector<NodeId> stack = {v.node()};
    while (!stack.empty()) {
      const NodeId n = stack.back();
      if (depends_.contains(n)) {
        stack.pop_back();
        continue;
      }
      bool is_ready = true, depends = false;
      for (const Value& o : graph_->operands(n)) {
        const auto it = depends_.find(o.node());
        if (stops_.contains(o))
          depends = true;
        else if (it == depends_.end())
          is_ready = false, stack.push_back(o.node());
        else
          depends = depends || it->second;
      }
      if (!is_ready) continue;
      depends_.emplace(n, depends);
      stack.pop_back();
    }
    return stops_.contains(v) || depends_.at(v.node());
  }

  void flow(const Value& to, const Value& d) {
    if (!d || !mark(to)) return;
    if (stops_.contains(to)) {
      add(totals_[to], d);
      return;
    }
    add(open_[to.node()][to.index()], d);
  }
  static void add(Value& sum, const Value& d) { sum = sum ? sum + d : d; }

  void step(NodeId n, const std::map<std::uint32_t, Value>& dy) {
    const Op& op = graph_->op(n);
    const auto of_node = graph_->operands(n);
    const std::vector<Value> operands(of_node.begin(), of_node.end());
    const std::vector<Type> types = graph_->result_types(n);
    const Attrs attrs = graph_->attrs(n);
    const Call call{op, operands, attrs, *graph_, types};
    if (op.grad) {
      Values results, d;
      for (std::uint32_t i = 0; i < types.size(); ++i) {
        results.emplace_back(graph_, n, i);
        d.push_back(dy.contains(i) ? dy.at(i) : Value());
      }
      const Values to = op.grad(call, results, d);
      for (std::size_t i = 0; i < to.size(); ++i) flow(operands[i], to[i]);
    } else if (op.differentiable || op.expand) {
      const Values parts = op.differentiable ? op.differentiable(call) : op.expand(call);
      for (const auto& [i, d] : dy) flow(parts[i], d);
    } else {
      const std::string from = origins_text(Value(graph_, n));
      throw UserError("gradient: operation ", op.name, from.empty() ? "" : " of ", from,
                      " has no derivative");
    }
  }

  Graph* graph_ = nullptr;
  std::unordered_set<Value, ValueHash> stops_;
  std::unordered_map<NodeId, bool> depends_;
  // By node, largest first, then by result.
  std::map<NodeId, std::map<std::uint32_t, Value>, std::greater<>> open_;
  std::unordered_map<Value, Value, ValueHash> totals_;
};

}  // namespace

Values gradients(std::span<const Value> ys, std::span<const Value> dys, std::span<const Value> xs) {
  HONE_ASSERT(ys.size() == dys.size(), ys.size(), " values and ", dys.size(), " weights");
  Differentiator d(ys, xs);
  d.run(ys, dys);
  Values out;
  for (const Value& x : xs) out.push_back(d.of(x));
  return out;
}

}  // namespace hone
