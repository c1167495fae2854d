#include "tensor/grad.h"

#include <algorithm>
#include <span>
#include <unordered_set>

#include "grad/gradients.h"
#include "ops/common.h"
#include "tensor/trace.h"

namespace hone {

class VariableAccess {
 public:
  static const std::shared_ptr<ProgramData>& program(const Variable& v) { return v.program_; }
  static std::int32_t place(const Variable& v) { return v.place_; }
};

namespace {

using ValueSet = std::unordered_set<Value, ValueHash>;

bool has_stops(const Function&);
bool has_stops_in_bodies(const Graph& graph, NodeId n) {
  return std::ranges::any_of(graph.attrs(n).entries(), [](const Attrs::Entry& e) {
    const auto* body = std::get_if<FunctionRef>(&e.second);
    return body && has_stops(**body);
  });
}
bool has_stops(const Function& f) {
  return std::ranges::any_of(live_nodes(f), [&](NodeId n) {
    return has_stops_in_bodies(f.graph(), n) ||
           (f.graph().result_count(n) > 0 && Trace::is_stop(Value(&f.graph(), n)));
  });
}

// Derivatives in a trace. They end at stops, and pass those who have a derivative of their own by
// it.
class Derivation {
 public:
  Derivation(Trace& trace, Values xs) : trace_(trace), xs_(std::move(xs)) {
    for (const Value& x : xs_) add_cut(x);
    // Calls made by rules may add others, which what is differentiated does not depend on.
    own_count_ = trace.own_gradients().size();
    for (const OwnGradient& o : trace.own_gradients())
      for (const Value& r : o.results) add_cut(r);
  }

  Values run(const Values& ys, const Values& dys) {
    accumulate(ys, dys);
    for (std::size_t i = own_count_; i-- > 0;) pass(i);
    Values out;
    for (const Value& x : xs_) out.push_back(total_or_zero(x));
    if (trace_.is_entry()) note(ys, dys, out);
    return out;
  }

  bool has(const Value& x) const { return totals_.contains(x); }

 private:
  void add_cut(const Value& v) {
    if (is_float(v.dtype()) && std::ranges::find(cuts_, v) == cuts_.end()) cuts_.push_back(v);
  }

  Value total_or_zero(const Value& x) const {
    const auto it = totals_.find(x);
    return it == totals_.end() ? constant_like(x, 0) : it->second;
  }

  // Cuts and stops that a path leads to which crosses no other.
  Values reached_from(const Values& ys) const {
    const ValueSet cuts(cuts_.begin(), cuts_.end());
    Values out;
    ValueSet found;
    std::unordered_set<NodeId> seen;
    std::vector<NodeId> open;
    const auto visit = [&](const Value& v) {
      if (Trace::is_stop(v) || cuts.contains(v)) {
        if (found.insert(v).second) out.push_back(v);
      } else if (seen.insert(v.node()).second) {
        open.push_back(v.node());
      }
    };
    for (const Value& y : ys) visit(y);
    while (!open.empty()) {
      const NodeId n = open.back();
      open.pop_back();
      for (const Value& o : trace_.graph().operands(n)) visit(o);
    }
    return out;
  }

  // What was derived, to be judged: as a whole, or between the rules of users.
  void note(const Values& ys, const Values& dys, const Values& dxs) {
    std::vector<Derivative>& to = trace_.derivatives();
    Derivative whole{ys, dys, {}, {}};
    for (const NodeId n : nodes_below(ys)) {
      const Graph& graph = trace_.graph();
      if (has_stops_in_bodies(graph, n)) is_exact_ = false;
      const Value v(&trace_.graph(), n);
      if (graph.result_count(n) == 1 && Trace::is_stop(v)) whole.held.push_back(v);
    }
    if (!is_exact_) {
      to.insert(to.end(), parts_.begin(), parts_.end());
      return;
    }
    for (std::size_t i = 0; i < xs_.size(); ++i)
      if (std::ranges::find(whole.xs, xs_[i]) == whole.xs.end()) {
        whole.xs.push_back(xs_[i]), whole.dxs.push_back(dxs[i]);
        std::erase(whole.held, xs_[i]);
      }
    to.push_back(std::move(whole));
  }

  void accumulate(const Values& ys, const Values& dys) {
    const Values reached = reached_from(ys);
    if (reached.empty()) return;
    const Values d = gradients(ys, dys, reached);
    parts_.push_back({ys, dys, reached, d});
    for (std::size_t i = 0; i < d.size(); ++i) {
      const auto [it, is_new] = totals_.emplace(reached[i], d[i]);
      if (!is_new) it->second = it->second + d[i];
    }
  }

  void pass(std::size_t i) {
    // Copied: the rule may call with_gradient(), which adds to the list.
    const OwnGradient own = trace_.own_gradients()[i];
    if (std::ranges::none_of(own.results, [&](const Value& r) { return has(r); })) return;
    is_exact_ = is_exact_ && own.is_exact;
    Values d;
    for (const Value& r : own.results)
      d.push_back(is_float(r.dtype()) ? total_or_zero(r) : constant_like(r, 0));
    Tensors given;
    {
      const TraceScope users_lines(trace_.shared_from_this());
      given = own.rule(trace_.tensors(own.inputs), trace_.tensors(own.results), trace_.tensors(d));
    }
    if (given.size() != own.inputs.size())
      throw UserError("with_gradient: the derivative gives ", given.size(), " tensors for ",
                      own.inputs.size(), " inputs, expected as many");
    Values ys, dys;
    for (std::size_t k = 0; k < given.size(); ++k) {
      if (given[k].is_empty()) continue;
      ys.push_back(own.inputs[k]);
      dys.push_back(trace_.value(given[k]));
      if (!(dys.back().type() == ys.back().type()))
        throw UserError("with_gradient: the derivative of input ", k, " is ", dys.back().type(),
                        ", expected ", ys.back().type(), ", the type of the input");
    }
    accumulate(ys, dys);
  }

  Trace& trace_;
  Values xs_, cuts_;
  std::size_t own_count_ = 0;
  std::unordered_map<Value, Value, ValueHash> totals_;
  std::vector<Derivative> parts_;
  bool is_exact_ = true;  // no rule of a user's was passed
};

void expect_scalar(const Value& loss) {
  if (loss.rank() != 0 || !is_float(loss.dtype()))
    throw UserError("grad: the loss is ", loss.type(),
                    ", expected a float scalar; reduce it with mean() or sum()");
}

// Throws for what the values do not depend on, unless that is allowed.
Values derived(Trace& t, const Values& ys, const Values& dys, const Values& xs,
               const std::vector<std::string>& names, GradOptions options) {
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (!is_float(xs[i].dtype()))
      throw UserError("grad: ", names[i], " is ", xs[i].type(), ", expected a float dtype");
  Derivation d(t, xs);
  const Values out = d.run(ys, dys);
  std::string unused;
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (!d.has(xs[i])) unused += cat(unused.empty() ? "" : ", ", names[i]);
  if (!options.unused && !unused.empty())
    throw UserError("grad: the loss does not depend on ", unused,
                    "; leave it out, or allow it with {.unused = true}");
  return out;
}

std::vector<std::string> numbered_names(std::size_t n) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(cat("x[", i, "]"));
  return out;
}

bool depends_on(const Value& y, const Value& x) {
  for (NodeId n : nodes_below(std::span(&y, 1)))
    if (n == x.node()) return true;
  return false;
}

// What a read of the state gave that the loss depends on: the last such, or else the last of all.
Value read_version(Trace& t, const Variable& v, const Value& loss) {
  if (VariableAccess::program(v) != t.program())
    throw UserError("grad: state '", v.name(), "' belongs to another program than ", t.what());
  Trace& entry = t.entry();
  const Value now = t.value(entry.read(VariableAccess::place(v)));
  if (depends_on(loss, now)) return now;
  const Values versions = entry.states().at(VariableAccess::place(v)).versions;
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
    const Value here = t.value(entry.tensor(*it));
    if (depends_on(loss, here)) return here;
  }
  return now;
}

}  // namespace

Tensors grad(const Tensor& loss, const Variables& x, GradOptions options, Where at) {
  return located(at, [&] {
    Trace& t = Trace::current();
    const Value y = t.value(loss);
    expect_scalar(y);
    Values xs;
    std::vector<std::string> names;
    for (const Variable& v : x) {
      names.push_back(cat("'", v.name(), "'"));
      xs.push_back(read_version(t, v, y));
    }
    return t.tensors(derived(t, {y}, {constant_like(y, 1)}, xs, names, options));
  });
}

Tensors grad(const Tensor& loss, const Tensors& x, GradOptions options, Where at) {
  return located(at, [&] {
    Trace& t = Trace::current();
    const Value y = t.value(loss);
    expect_scalar(y);
    return t.tensors(
        derived(t, {y}, {constant_like(y, 1)}, t.values(x), numbered_names(x.size()), options));
  });
}

Tensors vjp(const Tensors& ys, const Tensors& dys, const Tensors& xs, GradOptions options,
            Where at) {
  return located(at, [&] {
    Trace& t = Trace::current();
    if (ys.size() != dys.size())
      throw UserError("vjp: ", ys.size(), " values and ", dys.size(),
                      " derivatives, expected as many");
    const Values of = t.values(ys), d = t.values(dys);
    for (std::size_t i = 0; i < of.size(); ++i)
      if (!(of[i].type() == d[i].type()))
        throw UserError("vjp: value ", i, " is ", of[i].type(), " and its derivative ", d[i].type(),
                        ", expected equal types");
    return t.tensors(derived(t, of, d, t.values(xs), numbered_names(xs.size()), options));
  });
}

ValueAndGrad value_and_grad(const std::function<Tensor(const Tensors&)>& f, const Tensors& x,
                            GradOptions options, Where at) {
  return located(at, [&]() -> ValueAndGrad {
    Trace& t = Trace::current();
    Tensor value;
    {
      const TraceScope users_lines(t.shared_from_this());
      value = f(x);
    }
    return {value, grad(value, x, options, at)};
  });
}

Tensor stop_gradient(const Tensor& x, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    if (!is_float(v.dtype())) return v;
    return t.stop(v);
  });
}

Tensors with_gradient(const std::function<Tensors(const Tensors&)>& f, const Backward& backward,
                      const Tensors& inputs, Where at) {
  return located(at, [&] {
    Trace& t = Trace::current();
    OwnGradient own{.inputs = t.values(inputs), .results = {}, .rule = backward};
    Tensors results;
    {
      const TraceScope users_lines(t.shared_from_this());
      results = f(inputs);
    }
    for (const Value& v : t.values(results)) own.results.push_back(t.marked(v));
    t.own_gradients().push_back(own);
    return t.tensors(own.results);
  });
}

}  // namespace hone
