#include "kernel/problem/parts.h"

#include <algorithm>

#include "ops/expand.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Operand = Candidate::Operand;

// The node of this op, if there is exactly one.
Value only(const Function& f, const Op& op) {
  Value found;
  for (NodeId n : live_nodes(f)) {
    if (&f.graph().op(n) != &op) continue;
    if (found) return {};
    found = Value(&f.graph(), n);
  }
  return found;
}

// Combines candidates for parts of one group into a candidate for all of it.
class Parts {
 public:
  using Best = std::function<Candidate(const GroupSpec&)>;

  Parts(const GroupSpec& spec, const Function& function, const Best& best)
      : spec_(spec), function_(function), best_(best) {
    out_.name = "parts";
  }

  // The next part computes the value, from parameters and from the results of earlier parts.
  void add(Value v) {
    const int temporary = static_cast<int>(out_.temporaries.size());
    out_.temporaries.push_back({v.type(), false});
    const Values values = {v};
    add(values, {dense_strides(v.shape())}, {{Operand::Kind::temporary, temporary}});
    made_.push_back({v, temporary});
  }

  Candidate finish() {
    Values values;
    std::vector<Operand> places;
    for (std::size_t i = 0; i < function_.results().size(); ++i) {
      values.push_back(function_.result(i));
      places.push_back({Operand::Kind::result, static_cast<int>(i)});
    }
    add(values, spec_.result_strides, places);
    return std::move(out_);
  }

 private:
  struct Made {
    Value value;
    int temporary = 0;
  };

  void add(std::span<const Value> values, std::vector<Dims> strides, std::vector<Operand> results) {
    GroupSpec part;
    part.prepares = spec_.prepares;
    part.result_strides = std::move(strides);
    const std::vector<Operand> params = extract(values, part);
    Candidate best = best_(part);
    const int first = static_cast<int>(out_.temporaries.size());
    for (Candidate::Temporary& t : best.temporaries) out_.temporaries.push_back(std::move(t));
    for (Candidate::Step& step : best.steps) {
      for (Operand& o : step.operands) {
        const auto i = static_cast<std::size_t>(o.index);
        if (o.kind == Operand::Kind::temporary)
          o.index += first;
        else
          o = o.kind == Operand::Kind::param ? params[i] : results[i];
      }
      out_.steps.push_back(std::move(step));
    }
  }

  // Fills in function and parameters of the part; returns the operands for these parameters.
  std::vector<Operand> extract(std::span<const Value> values, GroupSpec& part) const {
    const Graph& graph = function_.graph();
    const std::vector<bool> needed = needed_for(values);
    std::vector<Operand> operands;
    std::vector<std::pair<NodeId, Value>> given;
    Function& f = part.function;
    for (std::size_t i = 0; i < function_.params().size(); ++i) {
      const Value v = function_.param(i);
      if (!needed[v.node()]) continue;
      given.emplace_back(v.node(), f.add_param(v.type(), function_.params()[i].name));
      operands.push_back({Operand::Kind::param, static_cast<int>(i)});
      part.param_strides.push_back(spec_.param_strides[i]);
      part.param_is_weight.push_back(spec_.param_is_weight[i]);
    }
    for (const Made& m : made_) {
      if (!needed[m.value.node()]) continue;
      given.emplace_back(m.value.node(), f.add_param(m.value.type(), cat("part", m.temporary)));
      operands.push_back({Operand::Kind::temporary, m.temporary});
      part.param_strides.push_back(dense_strides(m.value.shape()));
      part.param_is_weight.push_back(false);
    }
    Copier copy(function_, Values(function_.params().size()), f);
    for (const auto& [node, value] : given) copy.set(node, {value});
    for (NodeId n : live_nodes(function_))
      if (needed[n] && !copy.has(n) && &graph.op(n) != &ops::param) copy.copy(n);
    for (const Value& v : values) f.add_result(copy(v), cat("y", f.results().size()));
    return operands;
  }

  // Marks the nodes that a part needs; operands of results of earlier parts are not needed.
  std::vector<bool> needed_for(std::span<const Value> values) const {
    std::vector<bool> needed(function_.graph().node_count(), false);
    std::vector<Value> stack(values.begin(), values.end());
    while (!stack.empty()) {
      const Value v = stack.back();
      stack.pop_back();
      if (needed[v.node()]) continue;
      needed[v.node()] = true;
      if (std::ranges::none_of(made_, [&](const Made& m) { return m.value == v; }))
        for (const Value& operand : v.operands()) stack.push_back(operand);
    }
    return needed;
  }

  const GroupSpec& spec_;
  const Function& function_;
  const Best& best_;
  std::vector<Made> made_;
  Candidate out_;
};

}  // namespace

std::optional<Candidate> attention_in_parts(
    const GroupSpec& spec, const std::function<Candidate(const GroupSpec& part)>& best) {
  if (!only(spec.function, ops::attention)) return std::nullopt;
  // Only attention is expanded.
  const Function f =
      expand_composites(spec.function, [](const Op& op) { return &op != &ops::attention; });
  const Value probabilities = only(f, ops::softmax);
  if (!probabilities) return std::nullopt;
  Parts parts(spec, f, best);
  parts.add(probabilities.operand(0));
  parts.add(probabilities);
  return parts.finish();
}

std::optional<Candidate> row_in_parts(const GroupSpec& spec,
                                      const std::function<Candidate(const GroupSpec& part)>& best) {
  const Graph& given = spec.function.graph();
  if (std::ranges::none_of(live_nodes(spec.function), [&](NodeId n) {
        return given.op(n).is_row || given.op(n).kind == OpKind::reduction;
      }))
    return std::nullopt;
  const Function f = expand_composites(spec.function);
  const Value product = only(f, ops::dot);
  if (!product) return std::nullopt;
  Value row = product.operand(0);
  while (row.is(ops::reshape)) row = row.operand(0);
  const std::vector<NodeId> below = nodes_below(std::span(&row, 1));
  if (std::ranges::none_of(below,
                           [&](NodeId n) { return f.graph().op(n).kind == OpKind::reduction; }) ||
      std::ranges::any_of(row.shape().dims, [&](const Dim& d) {
        return !d.is_number() || (d != Dim(1) && d != row.shape().count());
      }))
    return std::nullopt;
  Parts parts(spec, f, best);
  parts.add(row);
  return parts.finish();
}

}  // namespace hone
