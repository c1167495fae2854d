// Recomputation: a part of a trace whose inner values the derivative computes again instead of
// keeping them (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016).
#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "ops/ops.h"
#include "tensor/body.h"
#include "tensor/grad.h"
#include "tensor/trace.h"

namespace hone {

namespace {

// What was recorded between two moments of a trace, as far as some results depend on it.
struct Segment {
  std::vector<NodeId> nodes;  // operands first
  Values inputs, results;     // values from before that it uses, but for constants
  std::vector<OwnGradient> own;

  // What is below the results from node `first` on.
  Segment(Trace& t, NodeId first, Values of) : results(std::move(of)) {
    std::unordered_set<Value, ValueHash> seen;
    // States that are read for the first time inside are parameters with later numbers.
    const auto is_from_before = [&](NodeId n) {
      return n < first || &t.graph().op(n) == &ops::param;
    };
    const auto add_input = [&](const Value& v) {
      if (is_from_before(v.node()) && !v.is(ops::constant) && seen.insert(v).second)
        inputs.push_back(v);
    };
    for (const NodeId n : nodes_below(results)) {
      if (is_from_before(n)) continue;
      nodes.push_back(n);
      for (const Value& o : t.graph().operands(n)) add_input(o);
    }
    for (const Value& r : results) add_input(r);
  }

  // The results once more, of other inputs; with the derivatives that users gave to parts of it.
  Values again(Trace& t, const Values& from) const {
    std::unordered_map<Value, Value, ValueHash> copies;
    for (std::size_t i = 0; i < inputs.size(); ++i) copies.emplace(inputs[i], from[i]);
    const auto copy = [&](const Values& all) {
      Values out;
      for (const Value& v : all) {
        const auto it = copies.find(v);
        out.push_back(it == copies.end() ? v : it->second);
      }
      return out;
    };
    Graph& graph = t.graph();
    for (const NodeId n : nodes) {
      const auto of = graph.operands(n);
      const Values operands = copy(Values(of.begin(), of.end()));
      const std::vector<Type> types = graph.result_types(n);
      const Attrs attrs = graph.attrs(n);
      const Value made = graph.intern_typed(graph.op(n), operands, attrs, types);
      for (std::uint32_t i = 0; i < types.size(); ++i)
        copies.emplace(Value(&graph, n, i), made.result(i));
    }
    for (const OwnGradient& o : own)
      t.own_gradients().push_back({copy(o.inputs), copy(o.results), o.rule, o.is_exact});
    return copy(results);
  }
};

// The derivatives of the segment's inputs, by its values computed again. An empty tensor where an
// input is no float.
Tensors derived_again(const Segment& s, const Tensors& inputs, const Tensors& d) {
  Trace& t = Trace::current();
  Values from;
  Tensors xs, ys, dys;
  for (const Value& v : t.values(inputs)) {
    from.push_back(t.marked(v));  // so that nothing is taken for what is computed already
    if (is_float(v.dtype())) xs.push_back(t.tensor(from.back()));
  }
  const Tensors results = t.tensors(s.again(t, from));
  for (std::size_t i = 0; i < results.size(); ++i)
    if (is_float(results[i].dtype())) ys.push_back(results[i]), dys.push_back(d[i]);
  return bodies::at_floats(inputs, vjp(ys, dys, xs, {.unused = true}));
}

}  // namespace

Tensors checkpoint(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs,
                   Where at) {
  return located(at, [&] {
    Trace& t = Trace::current();
    const auto first = static_cast<NodeId>(t.graph().node_count());
    const std::size_t rules = t.own_gradients().size();
    Tensors made;
    {
      const TraceScope users_lines(t.shared_from_this());
      made = f(inputs);
    }
    const auto segment = std::make_shared<Segment>(t, first, t.values(made));
    const std::vector<OwnGradient>& all = t.own_gradients();
    segment->own.assign(all.begin() + static_cast<std::ptrdiff_t>(rules), all.end());
    OwnGradient own{segment->inputs, {}, {}};
    own.is_exact = std::ranges::all_of(segment->own, &OwnGradient::is_exact);
    own.rule = [segment](const Tensors& in, const Tensors&, const Tensors& d) {
      return derived_again(*segment, in, d);
    };
    for (const Value& r : segment->results) own.results.push_back(t.marked(r));
    t.own_gradients().push_back(own);
    return t.tensors(own.results);
  });
}

}  // namespace hone
