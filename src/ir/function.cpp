#include "ir/function.h"

#include <algorithm>
#include <unordered_set>

namespace hone {

Function::Lists& Function::own() {
  if (lists_.use_count() != 1) lists_ = std::make_shared<Lists>(*lists_);
  lists_->forget();
  return *lists_;
}

Value Function::param(std::size_t i) const {
  if (i >= params().size())
    throw UserError("function: parameter ", i, " does not exist; it has ", params().size());
  return params()[i].value;
}

Value Function::result(std::size_t i) const {
  if (i >= results().size())
    throw UserError("function: result ", i, " does not exist; it has ", results().size());
  return results()[i].value;
}

Value Function::add_param(const Type& type, std::string name, bool donated,
                          std::optional<Array> required) {
  HONE_ASSERT(!required || required->type() == type, "parameter '", name, "' is ", type,
              " and must hold ", required->type());
  Value v = graph_->param(static_cast<std::int64_t>(params().size()), type);
  own().params.push_back({v, std::move(name), donated, std::move(required)});
  return v;
}

Value Function::add_param(const Type& type, const Param& like) {
  HONE_ASSERT(!like.capacity || fits(*like.capacity, type), "parameter '", like.name, "' ", type,
              " does not fit its capacity");
  const Value v = graph_->param(static_cast<std::int64_t>(params().size()), type);
  Param& made = own().params.emplace_back(like);
  made.value = v;
  return v;
}

void Function::add_result(Value v, std::string name, std::optional<std::uint32_t> stored_to) {
  HONE_ASSERT(v && &v.graph() == graph_.get(), "result '", name, "' is of another graph");
  own().results.push_back({v, std::move(name), stored_to});
}

void Function::store(std::size_t i, std::uint32_t param, std::optional<Capacity> capacity) {
  const std::string& name = results().at(i).name;
  const Type &from = result(i).type(), &to = this->param(param).type();
  if (capacity ? !same_but_for(*capacity, from, to) : !(from == to))
    throw UserError("result '", name, "' is ", from, ", but '", params()[param].name,
                    "', to which it is stored, is ", to,
                    capacity
                        ? cat(", with room for ", capacity->size, " along axis ", capacity->axis)
                        : std::string());
  for (std::size_t other = 0; other < results().size(); ++other)
    if (other != i && results()[other].stored_to == param)
      throw UserError("results '", results()[other].name, "' and '", name, "' are both stored to '",
                      params()[param].name, "'; one result for each");
  Lists& lists = own();
  lists.results[i].stored_to = param;
  lists.params[param].donated = true;
  lists.params[param].capacity = capacity;
}

std::vector<Type> Function::param_types() const {
  std::vector<Type> out;
  out.reserve(params().size());
  for (const Param& p : params()) out.push_back(p.value.type());
  return out;
}

std::vector<Type> Function::result_types() const {
  std::vector<Type> out;
  out.reserve(results().size());
  for (const Result& r : results()) out.push_back(r.value.type());
  return out;
}

Dims Function::symbols() const {
  Dims out;
  for (const Param& p : params())
    for (const Dim& d : p.value.type().shape.dims)
      for (const Dim& s : d.symbols())
        if (std::find(out.begin(), out.end(), s) == out.end()) out.push_back(s);
  return out;
}

namespace {

std::vector<NodeId> find_live(const Function& f) {
  const Graph& graph = f.graph();
  std::vector<NodeId> order;
  order.reserve(graph.node_count());
  std::vector<std::uint8_t> met(graph.node_count(), 0);
  struct Open {
    NodeId node;
    std::uint32_t next;  // operand
  };
  std::vector<Open> stack;
  auto visit = [&](NodeId root) {
    if (met[root]) return;
    met[root] = true;
    const std::span<const Value> own = graph.operands(root);
    if (std::all_of(own.begin(), own.end(), [&](const Value& v) { return met[v.node()]; }))
      return order.push_back(root);
    stack.push_back({root, 0});
    while (!stack.empty()) {
      Open& top = stack.back();
      std::span<const Value> operands = graph.operands(top.node);
      while (top.next < operands.size() && met[operands[top.next].node()]) ++top.next;
      if (top.next == operands.size()) {
        order.push_back(top.node);
        stack.pop_back();
        continue;
      }
      NodeId operand = operands[top.next++].node();
      met[operand] = true;
      stack.push_back({operand, 0});
    }
  };
  for (const Function::Param& p : f.params()) visit(p.value.node());
  for (NodeId n = 0; n < graph.node_count(); ++n)
    if (!graph.op(n).pure) visit(n);
  for (const Function::Result& r : f.results()) visit(r.value.node());
  return order;
}

Values param_values(const Function& f) {
  Values out;
  for (const Function::Param& p : f.params()) out.push_back(p.value);
  return out;
}

}  // namespace

std::vector<NodeId> live_nodes(const Function& f) {
  std::atomic<const Function::Live*>& known = f.lists_->live;
  const std::size_t node_count = f.graph().node_count();
  if (const Function::Live* live = known; live && live->node_count == node_count)
    return live->nodes;
  std::vector<NodeId> nodes = find_live(f);
  const Function::Live* none = nullptr;
  auto made = std::make_unique<const Function::Live>(node_count, nodes);
  if (known.compare_exchange_strong(none, made.get())) static_cast<void>(made.release());
  return nodes;
}

std::vector<NodeId> nodes_below(std::span<const Value> roots) {
  if (roots.empty()) return {};
  const Graph& graph = roots[0].graph();
  std::unordered_set<NodeId> seen;
  std::vector<NodeId> out;
  auto visit = [&](Value v) {
    if (seen.insert(v.node()).second) out.push_back(v.node());
  };
  for (Value v : roots) visit(v);
  for (std::size_t i = 0; i < out.size(); ++i)
    for (Value operand : graph.operands(out[i])) visit(operand);
  std::sort(out.begin(), out.end());  // nodes are made after their operands
  return out;
}

Copier::Copier(const Function& from, Function& to) : Copier(from, param_values(to), to) {}

Copier::Copier(const Function& from, std::span<const Value> params, Function& to)
    : from_(from), to_(to), first_(from.graph().node_count(), ~0u) {
  HONE_ASSERT(from.params().size() == params.size(), "copier: parameters differ");
  for (std::size_t i = 0; i < params.size(); ++i) set(from.param(i).node(), {params[i]});
}

Value Copier::operator()(Value v) const {
  HONE_ASSERT(has(v.node()), "value of ", v.op().name, " was not copied");
  return values_[first_[v.node()] + v.index()];
}

void Copier::set(NodeId node, std::vector<Value> results) {
  HONE_ASSERT(results.size() == from_.graph().result_count(node), from_.graph().op(node).name,
              ": replacement has ", results.size(), " results");
  first_[node] = static_cast<std::uint32_t>(values_.size());
  values_.insert(values_.end(), results.begin(), results.end());
}

bool Copier::has(NodeId node) const { return first_[node] != ~0u; }

std::uint32_t Copier::origins_in_target(NodeId node, bool with_rule) {
  const Graph& graph = from_.graph();
  std::uint32_t list = graph.origins_id(node);
  if (list == 0) return 0;
  if (origin_map_.size() <= list) origin_map_.resize(list + 1);
  std::uint32_t& made = origin_map_[list][with_rule];
  if (made == 0)
    made = to_.graph().origin_list(graph.origins(node),
                                   with_rule ? graph.rule(node) : std::string_view());
  return made;
}

Value Copier::copy(NodeId node) {
  const Graph& g = from_.graph();
  std::vector<Value> operands;
  bool same_types = true;
  for (const Value& v : g.operands(node)) {
    operands.push_back((*this)(v));
    same_types = same_types && operands.back().type() == v.type();
  }
  OriginScope scope(to_.graph(), origins_in_target(node, true));
  Value made = same_types ? to_.graph().intern_typed(g.op(node), operands, g.attrs(node),
                                                     g.result_types(node))
                          : to_.graph().intern(g.op(node), operands, g.attrs(node));
  std::vector<Value> results;
  for (std::size_t i = 0; i < g.result_count(node); ++i) results.push_back(made.result(i));
  set(node, std::move(results));
  return made;
}

Values results_of(const Function& f) {
  Values out;
  for (const Function::Result& r : f.results()) out.push_back(r.value);
  return out;
}

Function clone_params(const Function& f) {
  Function out;
  for (const Function::Param& p : f.params()) out.add_param(p.value.type(), p);
  for (const DimCheck& c : f.graph().checks()) out.graph().add_check(c);
  return out;
}

Function transform(
    const Function& f,
    const std::function<std::vector<Value>(NodeId, Copier&, Function& to)>& replace) {
  Function out = clone_params(f);
  Copier copier(f, out);
  for (NodeId n : live_nodes(f)) {
    if (copier.has(n)) continue;
    std::vector<Value> results;
    {
      OriginScope scope(out.graph(), copier.origins_in_target(n));
      results = replace(n, copier, out);
    }
    if (results.empty())
      copier.copy(n);
    else
      copier.set(n, std::move(results));
  }
  for (const Function::Result& r : f.results()) out.add_result(copier(r.value), r);
  return out;
}

Values inline_call(Graph& graph, const Function& inner, std::span<const Value> arguments) {
  HONE_ASSERT(arguments.size() == inner.params().size(), "inline: ", arguments.size(),
              " arguments for ", inner.params().size(), " parameters");
  const Graph& from = inner.graph();
  std::vector<Values> done(from.node_count());
  for (std::size_t i = 0; i < arguments.size(); ++i) done[inner.param(i).node()] = {arguments[i]};
  for (NodeId n : live_nodes(inner)) {
    if (!done[n].empty()) continue;
    Values operands;
    for (const Value& v : from.operands(n)) operands.push_back(done[v.node()][v.index()]);
    OriginScope scope(graph, graph.origin_list(from.origins(n)));
    Value made = graph.intern(from.op(n), operands, from.attrs(n));
    for (std::size_t i = 0; i < from.result_count(n); ++i) done[n].push_back(made.result(i));
  }
  Values results;
  for (const Function::Result& r : inner.results())
    results.push_back(done[r.value.node()][r.value.index()]);
  return results;
}

std::string origins_text(Value v) {
  std::string out;
  for (const Origin& o : v.graph().origins(v.node())) out += cat(out.empty() ? "" : ", ", o);
  return out;
}

}  // namespace hone
