#include "schedule/in_place.h"

#include <unordered_map>

#include "ops/ops.h"

namespace hone {

namespace {

// Finds the one result that depends on a parameter, elementwise all the way; -1 if there is none.
class Follower {
 public:
  explicit Follower(const Function& f) : f_(f), order_(live_nodes(f)) {}

  int only_result(std::size_t param) {
    reached_.assign(f_.graph().node_count(), false);
    NodeId from = f_.param(param).node();
    reached_[from] = true;
    for (NodeId n : order_)
      if (reads_reached(n)) {
        if (!is_elementwise(n, f_.param(param).shape())) return -1;
        reached_[n] = true;
      }
    int found = -1;
    for (std::size_t i = 0; i < f_.results().size(); ++i) {
      NodeId n = f_.result(i).node();
      if (!reached_[n]) continue;
      if (found >= 0 || n == from) return -1;
      found = static_cast<int>(i);
    }
    return found;
  }

 private:
  bool reads_reached(NodeId n) const {
    for (const Value& v : f_.graph().operands(n))
      if (reached_[v.node()]) return true;
    return false;
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
};

}  // namespace

std::vector<std::pair<int, int>> in_place_pairs(const Function& group) {
  std::vector<std::pair<int, int>> out;
  Follower follower(group);
  for (std::size_t i = 0; i < group.params().size(); ++i) {
    const Type& t = group.param(i).type();
    if (!t.is_tensor()) continue;
    int r = follower.only_result(i);
    if (r < 0) continue;
    const Type& to = group.result(static_cast<std::size_t>(r)).type();
    if (to.shape == t.shape && byte_size(to.dtype) == byte_size(t.dtype))
      out.emplace_back(r, static_cast<int>(i));
  }
  return out;
}

}  // namespace hone
