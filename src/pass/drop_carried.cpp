#include "pass/drop_carried.h"

#include <algorithm>
#include <unordered_set>

#include "ops/ops.h"
#include "pass/rewrite.h"

namespace hone {

namespace {

// What a function computes for some of its results and for its effects.
std::vector<NodeId> needed_nodes(const Function& f, const std::vector<bool>& results) {
  Values roots;
  for (std::size_t i = 0; i < f.results().size(); ++i)
    if (i >= results.size() || results[i]) roots.push_back(f.result(i));
  for (NodeId n : live_nodes(f))
    if (!f.graph().op(n).pure) roots.emplace_back(&f.graph(), n);
  return nodes_below(roots);
}

bool contains(const std::vector<NodeId>& sorted, NodeId n) {
  return std::ranges::binary_search(sorted, n);
}

// The function without parameters and results that are not kept.
FunctionRef reduced(const Function& f, const std::vector<bool>& keep, bool is_body) {
  auto out = std::make_shared<Function>();
  Values params;
  for (std::size_t i = 0; i < f.params().size(); ++i)
    params.push_back(keep[i] ? out->add_param(f.param(i).type(), f.params()[i]) : Value());
  for (const DimCheck& c : f.graph().checks()) out->graph().add_check(c);
  Copier copier(f, params, *out);
  for (NodeId n : needed_nodes(f, is_body ? keep : std::vector<bool>()))
    if (!copier.has(n)) copier.copy(n);
  for (std::size_t i = 0; i < f.results().size(); ++i)
    if (!is_body || keep[i]) out->add_result(copier(f.result(i)), f.results()[i]);
  return out;
}

// Checks all nodes, live or not: cheaper than finding the live ones.
bool has_loop(const Graph& graph) {
  for (NodeId n = 0; n < graph.node_count(); ++n)
    if (&graph.op(n) == &ops::while_loop) return true;
  return false;
}

class Dropper {
 public:
  explicit Dropper(const Function& f) : f_(f) {
    for (NodeId n : live_nodes(f))
      for (const Value& v : f.graph().operands(n)) read_.insert(v);
    for (const Function::Result& r : f.results()) read_.insert(r.value);
  }

  Function run() const {
    bool changed = false;
    Function out = transform(f_, [&](NodeId n, Copier& copier, Function& to) -> Values {
      if (&f_.graph().op(n) != &ops::while_loop) return {};
      const Value loop(&f_.graph(), n);
      const std::vector<bool> keep = kept(loop);
      if (std::ranges::find(keep, false) == keep.end()) return {};
      changed = true;
      return without(loop, keep, copier, to);
    });
    return changed ? out : f_;
  }

 private:
  // Of the loop's operands. The sizes of those not kept are the caller's, so that the body does not
  // get a symbol from them.
  std::vector<bool> kept(const Value& loop) const {
    const Function &go = *loop.attrs().get<FunctionRef>("condition"),
                   &body = *loop.attrs().get<FunctionRef>("body");
    const std::size_t carried = loop.result_count();
    std::vector<bool> keep(loop.operand_count(), false);
    const std::vector<NodeId> decides = needed_nodes(go, {});
    for (std::size_t i = 0; i < keep.size(); ++i)
      keep[i] = (i < carried && read_.contains(loop.result(static_cast<std::uint32_t>(i)))) ||
                contains(decides, go.param(i).node()) ||
                !(body.param(i).type() == loop.operand(i).type() &&
                  go.param(i).type() == loop.operand(i).type());
    for (bool is_new = true; is_new;) {
      is_new = false;
      const std::vector<NodeId> needed = needed_nodes(body, keep);
      for (std::size_t i = 0; i < keep.size(); ++i)
        if (!keep[i] && contains(needed, body.param(i).node())) keep[i] = is_new = true;
    }
    // A loop carries something.
    if (std::find(keep.begin(), keep.begin() + static_cast<std::ptrdiff_t>(carried), true) ==
        keep.begin() + static_cast<std::ptrdiff_t>(carried))
      keep.assign(keep.size(), true);
    return keep;
  }

  static Values without(const Value& loop, const std::vector<bool>& keep, const Copier& copier,
                        Function& to) {
    Values operands;
    for (std::size_t i = 0; i < keep.size(); ++i)
      if (keep[i]) operands.push_back(copier(loop.operand(i)));
    Attrs attrs = loop.attrs();
    attrs.set("condition", reduced(*loop.attrs().get<FunctionRef>("condition"), keep, false));
    attrs.set("body", reduced(*loop.attrs().get<FunctionRef>("body"), keep, true));
    const Value made = to.graph().intern(ops::while_loop, operands, attrs);
    Values results;
    std::uint32_t next = 0;
    // Of those dropped, which nobody reads, any value of the type.
    for (std::size_t i = 0; i < loop.result_count(); ++i)
      results.push_back(keep[i] ? made.result(next++) : copier(loop.operand(i)));
    return results;
  }

  const Function& f_;
  std::unordered_set<Value, ValueHash> read_;
};

}  // namespace

Function drop_carried(const Function& f) {
  return for_bodies_too(
      f, [](const Function& g) { return has_loop(g.graph()) ? Dropper(g).run() : g; });
}

}  // namespace hone
