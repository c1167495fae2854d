#include "tensor/control.h"

#include <algorithm>

#include "ops/common.h"
#include "tensor/functions.h"
#include "tensor/trace.h"

namespace hone {

namespace {

using Lambda = std::function<Tensors(const Tensors&)>;

// A function that was recorded inside another, whose tensors it may use.
struct Body {
  std::shared_ptr<Trace> trace;
  Tensors in;

  Body(Trace& outer, const std::string& what, const std::vector<Type>& params)
      : trace(std::make_shared<Trace>(what, outer.program(), outer.shared_from_this(),
                                      outer.is_training())) {
    for (const Type& type : params) add(type);
  }
  void add(const Type& type) { in.push_back(trace->parameter(type, cat("x", in.size()))); }
  Tensors call(const Lambda& f) const {
    const TraceScope recording(trace);
    return f(in);
  }
  void finish(const Tensors& results) const {
    for (const Value& v : trace->values(results)) trace->function().add_result(v);
  }
};

// Tensors around the bodies that they use, each once, as values where the operation is.
Values captured_by(Trace& outer, std::initializer_list<const Body*> bodies) {
  Values out;
  for (const Body* b : bodies)
    for (const Trace::Captured& c : b->trace->captured()) {
      const Value v = outer.value(c.outer);
      if (std::ranges::find(out, v) == out.end()) out.push_back(v);
    }
  return out;
}

// The body as a function of its parameters and of all that is captured.
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

Values joined_lists(Values a, const Values& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The slices at index `at` along the first axis.
Tensors slices_at(Trace& t, const Tensors& over, const Tensor& at) {
  Tensors out;
  for (const Tensor& x : over)
    out.push_back(t.tensor(squeeze(slice_at(t.value(x), 0, t.value(at)), Axes{0})));
  return out;
}

Dim steps_of(Trace& t, const Tensors& over) {
  if (over.empty()) throw UserError("scan: there is nothing to step over, expected a tensor");
  for (const Tensor& x : over) {
    if (x.rank() == 0) throw UserError("scan: a tensor is ", x.type(), ", expected an axis");
    t.graph().require_equal(x.size(0), over[0].size(0),
                            cat("scan: the first sizes are ", over[0].size(0), " and ", x.size(0),
                                ", expected equal sizes"));
  }
  return over[0].size(0);
}

Scanned unrolled(Trace& t, Tensors carried, const Tensors& over, const Dim& steps,
                 const std::function<Stepped(const Tensors&, const Tensors&)>& step) {
  if (!steps.is_number() || steps.number() < 1)
    throw UserError("scan: ", steps, " steps cannot be unrolled, expected a number from 1 on");
  std::vector<Tensors> kept;
  for (std::int64_t i = 0; i < steps.number(); ++i) {
    Tensors slices;
    for (const Tensor& x : over) slices.push_back(select(x, 0, i));
    const TraceScope users_lines(t.shared_from_this());
    Stepped done = step(carried, slices);
    carried = std::move(done.carried);
    kept.resize(done.kept.size());
    for (std::size_t k = 0; k < kept.size(); ++k) kept[k].push_back(done.kept[k]);
  }
  Scanned out{std::move(carried), {}};
  for (const Tensors& k : kept) out.kept.push_back(stack(k));
  return out;
}

}  // namespace

Tensors if_else(const Tensor& condition, const std::function<Tensors()>& yes,
                const std::function<Tensors()>& no, Where at) {
  return located(at, [&] {
    Trace& t = Trace::current();
    const Body then(t, "a branch of if_else", {}), other(t, "a branch of if_else", {});
    then.finish(then.call([&](const Tensors&) { return yes(); }));
    other.finish(other.call([&](const Tensors&) { return no(); }));
    const Values captured = captured_by(t, {&then, &other});
    return results_of_node(t, ops::if_else(joined_lists({t.value(condition)}, captured),
                                           {{"then", closed(t, then, captured)},
                                            {"else", closed(t, other, captured)}}));
  });
}

Tensors while_loop(const Tensors& x, const std::function<Tensor(const Tensors&)>& condition,
                   const std::function<Tensors(const Tensors&)>& body, Where at) {
  return located(at, [&] {
    Trace& t = Trace::current();
    const Body go(t, "the condition of while_loop", types_of(x)),
        next(t, "the body of while_loop", types_of(x));
    go.finish(go.call([&](const Tensors& in) { return Tensors{condition(in)}; }));
    next.finish(next.call(body));
    const Values captured = captured_by(t, {&go, &next});
    return results_of_node(t, ops::while_loop(joined_lists(t.values(x), captured),
                                              {{"condition", closed(t, go, captured)},
                                               {"body", closed(t, next, captured)}}));
  });
}

Scanned scan(const Tensors& carried, const Tensors& over,
             const std::function<Stepped(const Tensors&, const Tensors&)>& step,
             ScanOptions options, Where at) {
  return located(at, [&]() -> Scanned {
    Trace& t = Trace::current();
    const Dim steps = steps_of(t, over);
    if (options.unroll) return unrolled(t, carried, over, steps, step);
    std::vector<Type> types = types_of(carried);
    types.insert(types.begin(), i64({}));
    Body body(t, "the body of scan", types);
    Stepped done;
    body.call([&](const Tensors& in) {
      const Tensors slices = slices_at(*body.trace, over, in[0]);
      const TraceScope users_lines(body.trace);
      done = step(Tensors(in.begin() + 1, in.end()), slices);
      return Tensors();
    });
    // The results so far, which every step adds to.
    Tensors results = done.carried, start = carried;
    const Value i = body.trace->value(body.in[0]);
    results.insert(results.begin(), body.trace->tensor(i + integer_like(i, 1)));
    start.insert(start.begin(), t.tensor(constant(t.graph(), Array::scalar_int(0, DType::i64))));
    for (const Tensor& k : done.kept) {
      Type type = k.type();
      type.shape.dims.insert(type.shape.dims.begin(), steps);
      body.add(type);
      start.push_back(zeros(type));
      results.push_back(body.trace->tensor(
          updated_at(body.trace->value(body.in.back()), unsqueeze(body.trace->value(k), {0}), i)));
    }
    body.finish(results);
    const Body go(t, "the condition of scan", types_of(start));
    go.finish({go.trace->tensor(
        ops::lt(go.trace->value(go.in[0]), size_value(go.trace->graph(), steps, DType::i64)))});
    const Values captured = captured_by(t, {&body, &go});
    Tensors out = results_of_node(t, ops::while_loop(joined_lists(t.values(start), captured),
                                                     {{"condition", closed(t, go, captured)},
                                                      {"body", closed(t, body, captured)}}));
    const auto kept = out.begin() + 1 + std::ssize(carried);
    return {Tensors(out.begin() + 1, kept), Tensors(kept, out.end())};
  });
}

}  // namespace hone
