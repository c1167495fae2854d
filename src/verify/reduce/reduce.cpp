#include "verify/reduce/reduce.h"

#include <algorithm>
#include <map>

#include "ops/common.h"

namespace hone {

namespace {

// Changes to apply when a function is copied.
struct Edit {
  std::map<NodeId, Value> instead;          // result 0 of a node: another value of the function
  std::optional<NodeId> to_param;           // a node that becomes parameters
  std::function<Dim(const Dim&)> size;      // of every size
  std::function<Attrs(NodeId)> attributes;  // of the function's own nodes
};

// The leading part of an array, or its elements repeated.
Array resized(const Array& a, const std::vector<std::int64_t>& dims) {
  Array out = Array::zeros(a.dtype(), dims);
  const auto bytes = static_cast<std::size_t>(byte_size(a.dtype()));
  auto to = out.writable_bytes();
  if (a.count() > 0)
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = a.bytes()[i % (a.bytes().size() / bytes * bytes)];
  return out;
}

class Editor {
 public:
  Editor(const Function& f, const Edit& edit)
      : from_(f), edit_(edit), copies_(f.graph().node_count()) {}

  // Copies with the given results of the old function. Throws UserError when types no longer fit.
  Function operator()(const Values& results) {
    for (const Function::Param& p : from_.params())
      copies_[p.value.node()] = {out_.add_param(sized(p.value.type()), p.name, p.donated)};
    for (NodeId n : live_nodes(from_))
      if (copies_[n].empty()) copy(n);
    Values copied;
    for (const Value& v : results) copied.push_back(copies_[v.node()][v.index()]);
    return rebuilt(out_, copied, true);
  }

 private:
  Type sized(Type t) const {
    if (edit_.size)
      for (Dim& d : t.shape.dims) d = edit_.size(d);
    return t;
  }

  void copy(NodeId n) {
    const Graph& g = from_.graph();
    if (edit_.to_param == n) {
      for (const Type& t : g.result_types(n))
        copies_[n].push_back(out_.add_param(sized(t), cat("x", out_.params().size())));
      return;
    }
    if (auto it = edit_.instead.find(n); it != edit_.instead.end()) {
      copies_[n] = {copies_[it->second.node()].at(it->second.index())};
      return;
    }
    Values operands;
    for (const Value& v : g.operands(n)) operands.push_back(copies_[v.node()].at(v.index()));
    Value made = out_.graph().intern(g.op(n), operands,
                                     sized(edit_.attributes ? edit_.attributes(n) : g.attrs(n)));
    for (std::size_t i = 0; i < made.result_count(); ++i) copies_[n].push_back(made.result(i));
  }

  // These attributes hold sizes; other lists are axes, steps or pads.
  Attrs sized(Attrs attrs) const {
    if (!edit_.size) return attrs;
    Attrs out = attrs;
    for (const Attrs::Entry& e : attrs.entries()) {
      if (const auto* body = std::get_if<FunctionRef>(&e.second)) {
        Values results;
        for (const Function::Result& r : (*body)->results()) results.push_back(r.value);
        const Edit inner{{}, {}, edit_.size, {}};
        Function copy = Editor(**body, inner).whole(results);
        out.set(e.first, FunctionRef(std::make_shared<const Function>(copy)));
      } else if (const auto* array = std::get_if<Array>(&e.second)) {
        std::vector<std::int64_t> dims;
        for (std::int64_t d : array->dims()) dims.push_back(edit_.size(d).number());
        if (dims != array->dims()) out.set(e.first, resized(*array, dims));
      } else if (const auto* list = std::get_if<Dims>(&e.second);
                 list && (e.first == AttrName("shape") || e.first == AttrName("sizes") ||
                          e.first == AttrName("dims") || e.first == AttrName("count") ||
                          has_symbols(*list))) {
        Dims sizes = *list;
        for (Dim& d : sizes) d = edit_.size(d);
        out.set(e.first, sizes);
      }
    }
    return out;
  }

  static bool has_symbols(const Dims& list) {
    return std::any_of(list.begin(), list.end(), [](const Dim& d) { return !d.is_number(); });
  }

  // Bodies keep their parameters, which are operands of their node.
  Function whole(const Values& results) {
    for (const Function::Param& p : from_.params())
      copies_[p.value.node()] = {out_.add_param(sized(p.value.type()), p.name)};
    for (NodeId n : live_nodes(from_))
      if (copies_[n].empty()) copy(n);
    for (const Value& v : results) out_.add_result(copies_[v.node()][v.index()]);
    return out_;
  }

  const Function& from_;
  const Edit& edit_;
  Function out_;
  std::vector<Values> copies_;
};

class Reducer {
 public:
  Reducer(Case c, const Shows& shows, int most) : best_(std::move(c)), shows_(shows), left_(most) {}

  Case operator()() {
    fewer_runs();
    first_wrong_value();
    bool smaller = true;
    while (smaller && left_ > 0) {
      smaller = fewer_results();
      smaller = fewer_nodes() || smaller;
      smaller = without_bodies() || smaller;
      smaller = fewer_operands() || smaller;
      smaller = no_donation() || smaller;
      smaller = smaller_sizes() || smaller;
      smaller = plain_attributes() || smaller;
      smaller = fewer_runs() || smaller;
    }
    return best_;
  }

 private:
  const Function& f() const { return best_.function; }

  bool take(Function g, std::vector<CaseRun> runs) {
    if (left_-- <= 0) return false;
    Case c{std::move(g), std::move(runs)};
    if (!shows_(c)) return false;
    best_ = std::move(c);
    return true;
  }

  bool take(const Edit& edit, const Values& results, std::vector<CaseRun> runs) {
    try {
      return take(Editor(f(), edit)(results), std::move(runs));
    } catch (const std::exception&) {
      return false;  // types or operands do not fit after the edit
    }
  }
  bool take(const Edit& edit) { return take(edit, results_of(f()), best_.runs); }

  bool fewer_runs() {
    if (best_.runs.size() < 2) return false;
    for (const CaseRun& r : best_.runs)
      if (take(f(), {r})) return true;
    return false;
  }

  // For a long function: finds the earliest value that is wrong on its own.
  void first_wrong_value() {
    for (NodeId n : live_nodes(f())) {
      if (f().graph().op(n).kind == OpKind::leaf) continue;
      for (std::size_t i = 0; i < f().graph().result_count(n); ++i)
        if (take({}, {Value(&f().graph(), n).result(i)}, best_.runs)) return;
    }
  }

  bool fewer_results() {
    bool any = false;
    for (std::size_t i = 0; f().results().size() > 1 && i < f().results().size();) {
      Values results = results_of(f());
      results.erase(results.begin() + static_cast<std::ptrdiff_t>(i));
      if (take({}, results, best_.runs))
        any = true;
      else
        ++i;
    }
    return any;
  }

  // Nodes of f that are not parameters, users first; the list is read again after every success.
  template <class F>
  bool each_node(F try_one) {
    bool any = false;
    for (std::size_t i = 0;; ++i) {
      std::vector<NodeId> order = live_nodes(f());
      if (i >= order.size()) return any;
      NodeId n = order[order.size() - 1 - i];
      if (&f().graph().op(n) == &ops::param) continue;
      if (try_one(n)) any = true, --i;
      if (left_ <= 0) return any;
    }
  }

  bool fewer_nodes() {
    return each_node([&](NodeId n) {
      const Graph& g = f().graph();
      const bool is_leaf = g.op(n).kind == OpKind::leaf;
      if (!is_leaf && take({{}, n, {}, {}})) return true;
      for (const Value& v : g.operands(n))
        if (g.result_count(n) == 1 && v.type() == g.type(n) && take({{{n, v}}, {}, {}, {}}))
          return true;
      // A constant that is no longer a weight.
      return is_leaf && g.type(n).rank() > 0 && take({{}, n, {}, {}});
    });
  }

  // Replaces control flow by one of the branches, or by the body once.
  bool without_bodies() {
    return each_node([&](NodeId n) {
      const Graph& g = f().graph();
      if (g.op(n).kind != OpKind::control) return false;
      for (AttrName name : {AttrName("then"), AttrName("else"), AttrName("body")}) {
        if (!g.attrs(n).has(name)) continue;
        const Function& body = *g.attrs(n).get<FunctionRef>(name);
        Function out = transform(f(), [&](NodeId at, Copier& copy, Function& to) -> Values {
          if (at != n) return {};
          Values arguments;
          const std::size_t first = name == AttrName("body") ? 0 : 1;
          for (std::size_t i = first; i < g.operands(n).size(); ++i)
            arguments.push_back(copy(g.operands(n)[i]));
          return inline_call(to.graph(), body, arguments);
        });
        if (take(rebuilt(out, results_of(out), true), best_.runs)) return true;
      }
      return false;
    });
  }

  bool fewer_operands() {
    return each_node([&](NodeId n) {
      std::span<const Value> operands = f().graph().operands(n);
      // Tries to use one operand for both.
      for (const Value& a : operands)
        for (const Value& b : operands) {
          if (a == b || a.type() != b.type() || b.node() > a.node()) continue;
          if (a.result_count() == 1 && take({{{a.node(), b}}, {}, {}, {}})) return true;
        }
      return false;
    });
  }

  bool no_donation() {
    bool donated = false;
    for (const Function::Param& p : f().params()) donated = donated || p.donated;
    if (!donated) return false;
    Function out;
    for (const Function::Param& p : f().params()) out.add_param(p.value.type(), p.name);
    Copier copy(f(), out);
    for (NodeId n : live_nodes(f()))
      if (!copy.has(n)) copy.copy(n);
    for (const Function::Result& r : f().results()) out.add_result(copy(r.value), r);
    return take(out, best_.runs);
  }

  bool smaller_sizes() {
    bool any = false;
    for (const Dim& symbol : f().symbols()) {
      const std::int64_t size = best_.runs[0].sizes.at(symbol.name());
      auto with = [&](const Dim& d) {
        return d.substitute([&](const Dim& s) -> std::optional<Dim> {
          return s == symbol ? std::optional<Dim>(size) : std::nullopt;
        });
      };
      any = take({{}, {}, with, {}}) || any;
    }
    std::vector<std::int64_t> sizes;
    for (NodeId n : live_nodes(f()))
      for (const Type& t : f().graph().result_types(n))
        for (const Dim& d : t.shape.dims)
          if (d.is_number() && d.number() > 1) sizes.push_back(d.number());
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (std::int64_t from : sizes)
      for (std::int64_t to : {std::int64_t{1}, std::int64_t{2}, from / 2, from - 1}) {
        if (to >= from || to < 1) continue;
        auto with = [&](const Dim& d) { return d == Dim(from) ? Dim(to) : d; };
        if (!take({{}, {}, with, {}})) continue;
        any = true;
        break;
      }
    return any;
  }

  bool plain_attributes() {
    bool any = false;
    for (NodeId n : live_nodes(f())) {
      const Attrs attrs = f().graph().attrs(n);
      for (const Attrs::Entry& e : attrs.entries()) {
        if (const auto* list = std::get_if<Dims>(&e.second))
          for (std::size_t i = 0; i < list->size(); ++i)
            for (std::int64_t plain : {0, 1}) {
              Dims simple = *list;
              if (simple[i] == Dim(plain) || simple[i] == Dim(0)) continue;
              simple[i] = plain;
              if (with_attribute(n, e.first, simple)) return true;
            }
        if (const auto* number = std::get_if<std::int64_t>(&e.second))
          for (std::int64_t plain : {0, 1})
            if (plain < *number && with_attribute(n, e.first, plain)) return true;
      }
    }
    return any;
  }

  bool with_attribute(NodeId n, AttrName name, Attr value) {
    const Graph& g = f().graph();
    auto attributes = [&](NodeId at) {
      Attrs attrs = g.attrs(at);
      if (at == n) attrs.set(name, value);
      return attrs;
    };
    return take({{}, {}, {}, attributes});
  }

  Case best_;
  const Shows& shows_;
  int left_;
};

}  // namespace

namespace {

std::vector<bool> nodes_of(const Function& f, const Values& results) {
  std::vector<bool> used(f.graph().node_count(), false);
  std::vector<NodeId> open;
  for (const Value& v : results) open.push_back(v.node());
  while (!open.empty()) {
    NodeId n = open.back();
    open.pop_back();
    if (used[n]) continue;
    used[n] = true;
    for (const Value& v : f.graph().operands(n)) open.push_back(v.node());
  }
  return used;
}

// A parameter with a symbol as a size binds the symbol, so one such parameter must remain.
void keep_binding_params(const Function& f, std::vector<bool>& used) {
  Dims bound;
  for (bool already_used : {true, false})
    for (const Function::Param& p : f.params()) {
      if (used[p.value.node()] != already_used) continue;
      for (const Dim& d : p.value.shape().dims) {
        if (!d.is_symbol() || std::find(bound.begin(), bound.end(), d) != bound.end()) continue;
        bound.push_back(d);
        used[p.value.node()] = true;
      }
    }
}

}  // namespace

Function rebuilt(const Function& f, const Values& results, bool drop_params) {
  std::vector<bool> used = nodes_of(f, results);
  keep_binding_params(f, used);
  Function out;
  std::vector<Values> copies(f.graph().node_count());
  for (const Function::Param& p : f.params())
    if (used[p.value.node()] || !drop_params)
      copies[p.value.node()] = {
          out.add_param(p.value.type(), cat("x", out.params().size()), p.donated)};
  for (NodeId n = 0; n < f.graph().node_count(); ++n) {
    if (!used[n] || !copies[n].empty()) continue;
    Values operands;
    for (const Value& v : f.graph().operands(n)) operands.push_back(copies[v.node()][v.index()]);
    Value made = out.graph().intern(f.graph().op(n), operands, f.graph().attrs(n));
    for (std::size_t i = 0; i < made.result_count(); ++i) copies[n].push_back(made.result(i));
  }
  for (const Value& v : results)
    out.add_result(copies[v.node()][v.index()], cat("y", out.results().size()));
  return out;
}

Case reduced(Case c, const Shows& shows, int most) { return Reducer(std::move(c), shows, most)(); }

}  // namespace hone
