#include "pass/join_products.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "ops/common.h"
#include "ops/contraction.h"
#include "pass/rewrite.h"

namespace hone {

namespace {

// Joined weights are a copy in memory, and a large product uses the whole machine anyway.
constexpr std::int64_t most_joined_bytes = std::int64_t{16} << 20;

// One of the products to join.
struct Part {
  Value dot, bias;  // bias: a constant vector or number; empty: none
  Value last;       // the product, including the bias if any
};

class Joiner {
 public:
  explicit Joiner(const Function& f) : from_(f) {
    const std::vector<NodeId> live = live_nodes(f);
    const auto is_dot = [&](NodeId n) { return &f.graph().op(n) == &ops::dot; };
    if (std::ranges::count_if(live, is_dot) < 2) return;
    users_.resize(f.graph().node_count());
    for (NodeId n : live)
      for (const Value& v : f.graph().operands(n)) users_[v.node()].push_back(n);
    for (const Function::Result& r : f.results()) is_result_.insert(r.value.node());
    // Products by value (node and result number) and form, in order.
    std::map<std::tuple<NodeId, std::uint32_t, DType, bool>, std::vector<Part>> found;
    for (NodeId n : live)
      if (const auto p = part({&f.graph(), n})) {
        const Value x = p->dot.operand(0);
        found[{x.node(), x.index(), p->dot.dtype(), static_cast<bool>(p->bias)}].push_back(*p);
      }
    for (auto& [key, parts] : found)
      if (parts.size() > 1 && weight_bytes(parts) <= most_joined_bytes)
        groups_.push_back(std::move(parts));
  }

  Function run() {
    if (groups_.empty()) return from_;
    std::unordered_map<NodeId, const std::vector<Part>*> group_of;
    for (const std::vector<Part>& g : groups_)
      for (const Part& p : g) group_of.emplace(p.last.node(), &g);
    std::unordered_map<NodeId, Value> made;
    return transform(from_, [&](NodeId n, Copier& copy, Function&) -> Values {
      const auto group = group_of.find(n);
      if (group == group_of.end()) return {};
      if (!made.contains(n)) join(*group->second, copy, made);
      return {made.at(n)};
    });
  }

 private:
  std::optional<Part> part(Value dot) const {
    if (!dot.is(ops::dot) || is_result_.contains(dot.node())) return std::nullopt;
    const Value x = dot.operand(0), w = dot.operand(1);
    if (!w.is(ops::constant) || w.rank() != 2 || x.is(ops::constant) || x.rank() < 2 ||
        x.dtype() != w.dtype())
      return std::nullopt;
    const DotAxes axes = dot_axes(dot.attrs(), x.rank(), w.rank());
    if (!axes.batch_a.empty() || axes.contract_a != Axes{x.rank() - 1} ||
        axes.contract_b != Axes{0})
      return std::nullopt;
    Part p{dot, {}, dot};
    if (const std::vector<NodeId>& users = users_[dot.node()]; users.size() == 1) {
      const Value sum(&from_.graph(), users[0]);
      if (sum.is(ops::add)) {
        p.bias = bias_of(sum.operand(0) == dot ? sum.operand(1) : sum.operand(0));
        if (!p.bias || is_result_.contains(sum.node())) return std::nullopt;
        p.last = sum;
      }
    }
    const auto moves = [&](NodeId n) {
      const Op& op = from_.graph().op(n);
      return &op == &ops::reshape || &op == &ops::transpose || &op == &ops::attention;
    };
    if (!std::ranges::all_of(users_[p.last.node()], moves)) return std::nullopt;
    return p;
  }

  static std::int64_t weight_bytes(const std::vector<Part>& parts) {
    std::int64_t bytes = 0;
    for (const Part& p : parts)
      bytes += std::ssize(p.dot.operand(1).attrs().get<Array>("value").bytes());
    return bytes;
  }

  // The constant vector repeated along all axes but the last, or the number repeated along all.
  static Value bias_of(Value v) {
    const Dim size = v.shape()[-1];
    while (v.is(ops::broadcast) || v.is(ops::reshape)) v = v.operand(0);
    const bool fits = v.rank() == 0 || (v.rank() == 1 && v.shape()[0] == size);
    return v.is(ops::constant) && fits ? v : Value();
  }

  static Value copied(Value constant, Copier& copy) {
    return copy.has(constant.node()) ? copy(constant) : copy.copy(constant.node());
  }

  void join(const std::vector<Part>& parts, Copier& copy,
            std::unordered_map<NodeId, Value>& made) const {
    Values weights, biases;
    for (const Part& p : parts) {
      weights.push_back(copied(p.dot.operand(1), copy));
      if (p.bias) biases.push_back(broadcast_to(copied(p.bias, copy), Shape{p.last.shape()[-1]}));
    }
    const Value first = parts.front().dot;
    Value y = ops::dot(Values{copy(first.operand(0)), concat_values(weights, 1)}, first.attrs());
    if (!biases.empty()) y = y + broadcast_to(concat_values(biases, 0), y.shape());
    Dim start = 0;
    for (const Part& p : parts) {
      const Dim size = p.last.shape()[-1];
      made.emplace(p.last.node(), slice_axis(y, y.rank() - 1, start, size));
      start = start + size;
    }
  }

  const Function& from_;
  std::vector<std::vector<NodeId>> users_;
  std::unordered_set<NodeId> is_result_;
  std::vector<std::vector<Part>> groups_;
};

}  // namespace

Function join_products(const Function& f) {
  return for_bodies_too(f, [](const Function& g) { return Joiner(g).run(); });
}

}  // namespace hone
