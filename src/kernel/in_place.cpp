#include "kernel/in_place.h"

#include <algorithm>
#include <optional>

#include "ops/ops.h"

namespace hone {

namespace {

// Finds the results that depend on a parameter, elementwise all the way.
class Follower {
 public:
  explicit Follower(const Function& f) : f_(f), order_(live_nodes(f)) {}

  // Empty if another does, or not elementwise. If there are several and only one is allowed, the
  // last, or none.
  // Valid until the next call.
  const std::vector<int>& results(std::size_t param, bool allows_several) {
    found_.clear();
    reached_.assign(f_.graph().node_count(), false);
    NodeId from = f_.param(param).node();
    reached_[from] = true;
    for (NodeId n : order_)
      if (reads_reached(n)) {
        if (!is_elementwise(n, f_.param(param).shape())) return found_;
        reached_[n] = true;
      }
    for (std::size_t i = 0; i < f_.results().size(); ++i) {
      NodeId n = f_.result(i).node();
      if (!reached_[n]) continue;
      if (n == from) {
        found_.clear();
        break;
      }
      found_.push_back(static_cast<int>(i));
    }
    if (found_.size() > 1 && !allows_several) {
      if (follow_one_anchor())
        found_ = {found_.back()};
      else
        found_.clear();
    }
    return found_;
  }

 private:
  bool reads_reached(NodeId n) const {
    for (const Value& v : f_.graph().operands(n))
      if (reached_[v.node()]) return true;
    return false;
  }

  // Whether the found results are made, element by element, of one contraction or reduction.
  bool follow_one_anchor() const {
    const Graph& graph = f_.graph();
    std::vector<bool> follows(graph.node_count(), false);
    std::optional<NodeId> anchor;
    for (NodeId n : order_) {
      const OpKind kind = graph.op(n).kind;
      const auto operands = graph.operands(n);
      const bool is_below =
          std::ranges::any_of(operands, [&](const Value& v) { return follows[v.node()]; });
      if (kind == OpKind::elementwise ? is_below
                                      : kind != OpKind::leaf && kind != OpKind::movement) {
        if (kind != OpKind::elementwise && (anchor || graph.result_count(n) != 1)) return false;
        if (!anchor) anchor = n;
        if (graph.type(n).shape != graph.type(*anchor).shape) return false;
        follows[n] = true;
      } else if (is_below) {
        return false;
      }
    }
    return std::ranges::all_of(
        found_, [&](int i) { return follows[f_.result(static_cast<std::size_t>(i)).node()]; });
  }

  bool is_elementwise(NodeId n, const Shape& shape) const {
    const Graph& graph = f_.graph();
    if (graph.op(n).kind != OpKind::elementwise || graph.type(n).shape != shape) return false;
    for (const Value& v : graph.operands(n))
      if (reached_[v.node()] && v.shape() != shape) return false;
    return true;
  }

  const Function& f_;
  std::vector<NodeId> order_;
  std::vector<bool> reached_;
  std::vector<int> found_;
};

}  // namespace

bool stores_last(const Function& group) {
  if (group.results().size() < 2) return false;
  for (const Function::Result& r : group.results())
    if (!r.value.type().is_tensor() || r.value.shape() != group.result(0).shape()) return false;
  const Graph& graph = group.graph();
  return std::ranges::all_of(live_nodes(group), [&](NodeId n) {
    const OpKind kind = graph.op(n).kind;
    return kind == OpKind::elementwise || kind == OpKind::leaf || &graph.op(n) == &ops::broadcast ||
           &graph.op(n) == &ops::reshape;
  });
}

std::vector<std::pair<int, int>> in_place_pairs(const Function& group) {
  std::vector<std::pair<int, int>> out;
  Follower follower(group);
  const bool allows_several = stores_last(group);
  for (std::size_t i = 0; i < group.params().size(); ++i) {
    const Type& t = group.param(i).type();
    if (!t.is_tensor()) continue;
    for (int r : follower.results(i, allows_several)) {
      const Type& to = group.result(static_cast<std::size_t>(r)).type();
      if (to.shape == t.shape && byte_size(to.dtype) == byte_size(t.dtype))
        out.emplace_back(r, static_cast<int>(i));
    }
  }
  return out;
}

}  // namespace hone
