#include "tensor/linearized_step.h"

#include <algorithm>

#include "ops/common.h"

namespace hone::bodies {

namespace {

// Cheaper to compute again than to store.
bool is_light(const Op& op) {
  constexpr double most_cost = 8;
  if (&op == &ops::replay || op.kind == OpKind::leaf || op.kind == OpKind::movement) return true;
  return op.kind == OpKind::elementwise && op.cost < most_cost;
}

// One function of a step's operands and of derivatives of its results, which gives both its
// results and the derivatives of its operands; to be cut in two.
class Splitter {
 public:
  Splitter(const Step& s, Function whole, Values operands, Values dys, const Pulled& p, Trace& t)
      : step_(s),
        whole_(std::move(whole)),
        operands_(std::move(operands)),
        dys_(std::move(dys)),
        given_(t.values(p.given)),
        results_(t.values(p.results)),
        d_(t.values(without_empty(p.d))) {
    find_sources();
    for (NodeId n : nodes_below(d_))
      if (is_of(n, of_dy))
        for (const Value& v : graph().operands(n))
          if (!is_of(v.node(), of_dy)) need(v);
  }

  FunctionRef forward() const {
    Function asked = whole_;
    for (const Value& v : joined(results_, saved_)) asked.add_result(v);
    auto out = std::make_shared<Function>();
    Values params(whole_.params().size());
    for (std::size_t i = 0; i < operands_.size(); ++i)
      params[i] = out->add_param(operands_[i].type(), cat("x", i));
    Copier copy(asked, params, *out);
    skip_marks(copy);
    for (NodeId n : live_nodes(asked))
      if (!copy.has(n) && &graph().op(n) != &ops::param) copy.copy(n);
    for (const Function::Result& r : asked.results()) out->add_result(copy(r.value));
    return out;
  }

  FunctionRef backward(const std::vector<bool>& is_zero) const {
    auto out = std::make_shared<Function>();
    Values params(whole_.params().size()), saved;
    for (const Value& v : saved_)
      saved.push_back(out->add_param(v.type(), cat("saved", saved.size())));
    for (std::size_t i = step_.carried; i < operands_.size(); ++i)
      params[i] = out->add_param(operands_[i].type(), cat("x", i));
    for (std::size_t i = 0; i < dys_.size(); ++i)
      if (!is_zero.at(i))
        params[operands_.size() + i] = out->add_param(dys_[i].type(), cat("dy", i));
    for (std::size_t i = 0; i < saved_.size(); ++i)
      if (saved_[i].is(ops::param)) params[param_number(saved_[i])] = saved[i];
    Copier copy(whole_, params, *out);
    skip_marks(copy);
    for (std::size_t i = 0; i < saved_.size(); ++i) set_saved(copy, i, saved);
    copy_derivatives(copy, *out);
    for (const Value& v : d_) out->add_result(or_zero(copy, v, *out));
    return out;
  }

 private:
  enum : std::uint8_t { of_step = 1, of_dy = 2 };

  Graph& graph() const { return whole_.graph(); }
  bool is_of(NodeId n, std::uint8_t what) const { return (sources_[n] & what) != 0; }
  bool is_carried(const Value& v) const {
    const auto end = operands_.begin() + static_cast<std::ptrdiff_t>(step_.carried);
    return std::find(operands_.begin(), end, v) != end;
  }

  void find_sources() {
    sources_.assign(graph().node_count(), 0);
    for (std::size_t i = 0; i < step_.carried + step_.over; ++i)
      sources_[operands_[i].node()] = of_step;
    for (const Value& v : dys_) sources_[v.node()] = of_dy;
    for (NodeId n : nodes_below(joined(results_, d_)))
      for (const Value& v : graph().operands(n)) sources_[n] |= sources_[v.node()];
  }

  // Saves what the derivative needs to compute v: v itself, or what it is lightly made of. What is
  // made of captured tensors only is not of a step.
  void need(const Value& v) {
    Values open = {v};
    while (!open.empty()) {
      const Value now = open.back();
      open.pop_back();
      if (!is_of(now.node(), of_step) || std::ranges::find(saved_, now) != saved_.end()) continue;
      const bool is_param = now.is(ops::param);
      if (is_param ? is_carried(now) : !is_light(now.op()))
        saved_.push_back(now);
      else if (!is_param)
        for (const Value& o : now.operands()) open.push_back(o);
    }
  }

  // The marks of operands are for vjp() only.
  void skip_marks(Copier& copy) const {
    for (std::size_t i = 0; i < given_.size(); ++i)
      if (copy.has(operands_[i].node())) copy.set(given_[i].node(), {copy(operands_[i])});
  }

  std::size_t param_number(const Value& v) const {
    return static_cast<std::size_t>(std::ranges::find(operands_, v) - operands_.begin());
  }

  // Of a node with several results, those that were not saved are not asked for.
  void set_saved(Copier& copy, std::size_t i, const Values& saved) const {
    const NodeId n = saved_[i].node();
    if (saved_[i].is(ops::param) || copy.has(n)) return;
    Values results(graph().result_count(n), saved[i]);
    for (std::size_t k = i; k < saved_.size(); ++k)
      if (saved_[k].node() == n) results[saved_[k].index()] = saved[k];
    copy.set(n, std::move(results));
  }

  // A derivative that is 0 has an empty copy.
  static Value or_zero(const Copier& copy, const Value& v, Function& to) {
    const Value made = copy(v);
    if (made) return made;
    return broadcast_to(scalar(to.graph(), 0, v.dtype()), v.shape());
  }

  void set_zeros(Copier& copy, NodeId n, Function& to) const {
    Values zeros;
    for (std::uint32_t i = 0; i < graph().result_count(n); ++i)
      zeros.push_back(or_zero(copy, Value(&graph(), n, i), to));
    copy.set(n, std::move(zeros));
  }

  void copy_derivatives(Copier& copy, Function& to) const {
    std::vector<bool> needed(graph().node_count(), false);
    std::vector<NodeId> open;
    for (const Value& v : d_) open.push_back(v.node());
    while (!open.empty()) {
      const NodeId n = open.back();
      open.pop_back();
      if (needed[n] || copy.has(n)) continue;
      needed[n] = true;
      for (const Value& v : graph().operands(n)) open.push_back(v.node());
    }
    for (NodeId n : nodes_below(d_))
      if (needed[n] && !(is_of(n, of_dy) && copy_simpler(copy, n, to))) copy.copy(n);
  }

  // Derivatives are linear in those they are made of: of zeros only they are 0, and a sum is the
  // other. False if the node is to be copied as it is.
  bool copy_simpler(Copier& copy, NodeId n, Function& to) const {
    const std::span<const Value> operands = graph().operands(n);
    const auto is_zero = [&](const Value& v) { return is_of(v.node(), of_dy) && !copy(v); };
    if (std::ranges::none_of(operands, is_zero)) return false;
    if (std::ranges::all_of(
            operands, [&](const Value& v) { return is_zero(v) || !is_of(v.node(), of_dy); })) {
      copy.set(n, Values(graph().result_count(n)));
    } else if (&graph().op(n) == &ops::add) {
      copy.set(n, {copy(operands[is_zero(operands[0]) ? 1 : 0])});
    } else {
      for (const Value& v : operands)
        if (is_zero(v)) set_zeros(copy, v.node(), to);
      return false;
    }
    return true;
  }

  Step step_;
  Function whole_;
  Values operands_, dys_, given_, results_, d_;
  std::vector<std::uint8_t> sources_;
  Values saved_;
};

}  // namespace

LinearizedStep linearized(Trace& outer, const Step& s, Where at) {
  std::vector<Type> types = s.f->param_types();
  for (const Type& type : s.f->result_types())
    if (is_float(type.dtype)) types.push_back(type);
  const Body body(outer, "the derivative of a step of scan", types);
  const std::size_t count = s.f->params().size();
  const Tensors operands = part_of(body.in, 0, count),
                dys = part_of(body.in, count, body.in.size() - count);
  Pulled p;
  body.call([&](const Tensors&) {
    p = pulled_back(
        *s.f, operands, [&](const Tensors& results) { return at_floats(results, dys); }, at);
    return Tensors();
  });
  Trace& t = *body.trace;
  const auto split =
      std::make_shared<const Splitter>(s, t.function(), t.values(operands), t.values(dys), p, t);
  LinearizedStep out;
  out.forward_ = split->forward();
  out.f_results_ = s.f->results().size();
  out.backward_ = [split](const std::vector<bool>& is_zero) { return split->backward(is_zero); };
  return out;
}

}  // namespace hone::bodies
