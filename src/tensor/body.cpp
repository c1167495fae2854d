#include "tensor/body.h"

#include <algorithm>

#include "ops/common.h"

namespace hone::bodies {

Body::Body(Trace& outer, const std::string& what, const std::vector<Type>& params)
    : trace(std::make_shared<Trace>(what, outer.program(), outer.shared_from_this(),
                                    outer.is_training())) {
  for (const Type& type : params) add(type);
}

void Body::add(const Type& type) { in.push_back(trace->parameter(type, cat("x", in.size()))); }

Tensors Body::call(const Lambda& f) const {
  const TraceScope recording(trace);
  return f(in);
}

void Body::finish(const Tensors& results) const {
  for (const Value& v : trace->values(results)) trace->function().add_result(v);
}

Values captured_by(Trace& outer, std::initializer_list<const Body*> bodies) {
  Values out;
  for (const Body* b : bodies)
    for (const Trace::Captured& c : b->trace->captured()) {
      const Value v = outer.value(c.outer);
      if (std::ranges::find(out, v) == out.end()) out.push_back(v);
    }
  return out;
}

FunctionRef closed(Trace& outer, const Body& body, const Values& captured) {
  auto out = std::make_shared<Function>();
  std::vector<std::pair<Value, Value>> given;  // parameters of the body, and of the result
  for (const Tensor& t : body.in)
    given.emplace_back(body.trace->value(t), out->add_param(t.type(), cat("x", given.size())));
  const std::size_t first = given.size();
  for (const Value& c : captured)
    given.emplace_back(Value(), out->add_param(c.type(), cat("captured", given.size() - first)));
  for (const Trace::Captured& c : body.trace->captured()) {
    const auto at = std::ranges::find(captured, outer.value(c.outer)) - captured.begin();
    given.emplace_back(c.inner, given[first + static_cast<std::size_t>(at)].second);
  }
  Values arguments;
  for (const Function::Param& p : body.trace->function().params())
    arguments.push_back(std::ranges::find(given, p.value, [](auto& x) { return x.first; })->second);
  for (const Value& v : inline_call(out->graph(), body.trace->function(), arguments))
    out->add_result(v);
  return out;
}

Tensors results_of_node(Trace& t, const Value& first) {
  Tensors out;
  for (std::size_t i = 0; i < first.result_count(); ++i) out.push_back(t.tensor(first.result(i)));
  return out;
}

std::vector<Type> types_of(const Tensors& tensors) {
  std::vector<Type> out;
  for (const Tensor& t : tensors) out.push_back(t.type());
  return out;
}

Pulled pulled_back(const Function& f, const Tensors& arguments,
                   const std::function<Tensors(const Tensors& results)>& weights, Where at) {
  Trace& t = Trace::current();
  Tensors xs, ys, dys;
  Pulled out;
  for (const Value& v : t.values(arguments)) {
    out.given.push_back(t.tensor(t.marked(v)));
    if (is_float(v.dtype())) xs.push_back(out.given.back());
  }
  out.results = t.tensors(inline_call(t.graph(), f, t.values(out.given)));
  const Tensors d = weights(out.results);
  for (std::size_t i = 0; i < d.size(); ++i)
    if (is_float(out.results[i].dtype())) ys.push_back(out.results[i]), dys.push_back(d[i]);
  const Tensors of = vjp(ys, dys, xs, {.unused = true}, at);
  std::size_t next = 0;
  for (const Tensor& x : out.given) out.d.push_back(is_float(x.dtype()) ? of[next++] : Tensor());
  return out;
}

Tensors without_empty(const Tensors& tensors) {
  Tensors out;
  for (const Tensor& t : tensors)
    if (!t.is_empty()) out.push_back(t);
  return out;
}

Tensors at_floats(const Tensors& like, const Tensors& some) {
  Tensors out;
  std::size_t next = 0;
  for (const Tensor& t : like) out.push_back(is_float(t.dtype()) ? some[next++] : Tensor());
  return out;
}

Tensors part_of(const Tensors& all, std::size_t first, std::size_t count) {
  const auto from = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {from, from + static_cast<std::ptrdiff_t>(count)};
}

Tensors with_rule(Trace& t, const Tensors& inputs, const Tensors& results, const Backward& rule) {
  OwnGradient own{t.values(inputs), {}, rule, true};
  for (const Value& v : t.values(results)) own.results.push_back(t.marked(v));
  t.own_gradients().push_back(own);
  return t.tensors(own.results);
}

}  // namespace hone::bodies
