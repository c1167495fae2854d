#include "tensor/control.h"

#include <algorithm>

#include "ops/common.h"
#include "tensor/functions.h"
#include "tensor/grad.h"
#include "tensor/trace.h"

namespace hone {

namespace {

using Lambda = std::function<Tensors(const Tensors&)>;

// A function that was recorded inside another, whose tensors it may use.
struct Body {
  ~Body() { trace->own_gradients().clear(); }  // which may hold tensors of the trace
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

// The results of the function on these tensors, and then their derivatives.
struct Pulled {
  Tensors results, d;  // d is empty where an argument is no float
};
Pulled pulled_back(const FunctionRef& f, const Tensors& arguments,
                   const std::function<Tensors(const Tensors& results)>& weights) {
  Trace& t = Trace::current();
  Tensors in, xs, ys, dys;
  for (const Value& v : t.values(arguments)) {
    in.push_back(t.tensor(t.marked(v)));
    if (is_float(v.dtype())) xs.push_back(in.back());
  }
  Pulled out;
  out.results = t.tensors(inline_call(t.graph(), *f, t.values(in)));
  const Tensors d = weights(out.results);
  for (std::size_t i = 0; i < d.size(); ++i)
    if (is_float(out.results[i].dtype())) ys.push_back(out.results[i]), dys.push_back(d[i]);
  const Tensors of = vjp(ys, dys, xs, {.unused = true});
  std::size_t next = 0;
  for (const Tensor& x : in) out.d.push_back(is_float(x.dtype()) ? of[next++] : Tensor());
  return out;
}

Tensors without_empty(const Tensors& tensors) {
  Tensors out;
  for (const Tensor& t : tensors)
    if (!t.is_empty()) out.push_back(t);
  return out;
}

// One tensor for each of `like`: the next of `some` where it is a float, else an empty one.
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

Tensors joined_tensors(Tensors a, const Tensors& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Marks the results, and gives them a derivative.
Tensors with_rule(Trace& t, const Tensors& inputs, const Tensors& results, const Backward& rule) {
  OwnGradient own{t.values(inputs), {}, rule, true};
  for (const Value& v : t.values(results)) own.results.push_back(t.marked(v));
  t.own_gradients().push_back(own);
  return t.tensors(own.results);
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
    const FunctionRef on = closed(t, then, captured), off = closed(t, other, captured);
    const Tensors results = results_of_node(
        t,
        ops::if_else(joined_lists({t.value(condition)}, captured), {{"then", on}, {"else", off}}));
    if (!then.trace->own_gradients().empty() || !other.trace->own_gradients().empty())
      return results;
    // The derivatives of the branch that was taken, which computes its values again.
    const Backward rule = [on, off](const Tensors& in, const Tensors&, const Tensors& d) {
      const Tensors arguments(in.begin() + 1, in.end());
      const auto branch = [&](const FunctionRef& f) {
        return [&, f] {
          return without_empty(pulled_back(f, arguments, [&](const Tensors&) { return d; }).d);
        };
      };
      return at_floats(in, if_else(in[0], branch(on), branch(off)));
    };
    return with_rule(t, joined_tensors({condition}, t.tensors(captured)), results, rule);
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

namespace {

// Steps in a loop. The step is recorded once, in the loop's body.
Scanned looped(Trace& t, const Tensors& carried, const Tensors& over, const Dim& steps,
               const std::function<Stepped(const Tensors&, const Tensors&)>& step) {
  std::vector<Type> types = types_of(carried);
  types.insert(types.begin(), i64({}));
  Body body(t, "the body of scan", types);
  Stepped done;
  body.call([&](const Tensors& in) {
    done = step(Tensors(in.begin() + 1, in.end()), slices_at(*body.trace, over, in[0]));
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
  const Tensors out = results_of_node(t, ops::while_loop(joined_lists(t.values(start), captured),
                                                         {{"condition", closed(t, go, captured)},
                                                          {"body", closed(t, body, captured)}}));
  const std::size_t n = carried.size();
  return {part_of(out, 1, n), part_of(out, 1 + n, done.kept.size())};
}

// A step as a function of carried tensors, slices and captured tensors.
struct StepFunction {
  FunctionRef f;
  std::size_t carried = 0, over = 0, captured = 0;
  Dim steps;

  Stepped operator()(const Tensors& c, const Tensors& slices, const Tensors& around) const {
    Trace& t = Trace::current();
    const Values in = t.values(joined_tensors(joined_tensors(c, slices), around));
    const Tensors all = t.tensors(inline_call(t.graph(), *f, in));
    return {part_of(all, 0, carried), part_of(all, carried, all.size() - carried)};
  }
};

// The derivatives of a scan: its steps once more, to keep what each was given, and then backwards,
// both by scans, which have derivatives themselves. The inputs are the carried tensors, those that
// are stepped over, and those captured.
Tensors scan_backward(const StepFunction& s, const Tensors& inputs, const Tensors& d) {
  const Tensors carried = part_of(inputs, 0, s.carried), over = part_of(inputs, s.carried, s.over),
                around = part_of(inputs, s.carried + s.over, s.captured);
  const Scanned given =
      scan(carried, over, [&](const Tensors& c, const Tensors& slices) -> Stepped {
        return {s(c, slices, around).carried, c};
      });
  const std::size_t kept = d.size() - s.carried;
  Tensors backwards;
  for (const Tensor& x :
       joined_tensors(joined_tensors(given.kept, over), part_of(d, s.carried, kept)))
    backwards.push_back(flip(x, 0));
  // Carried back: derivatives of what was carried on, and sums of those of captured tensors.
  Tensors start;
  for (std::size_t i = 0; i < s.carried; ++i)
    if (is_float(carried[i].dtype())) start.push_back(d[i]);
  const std::size_t moving = start.size();
  for (const Tensor& x : around)
    if (is_float(x.dtype())) start.push_back(zeros_like(x));
  const Scanned back =
      scan(start, backwards, [&](const Tensors& c, const Tensors& slices) -> Stepped {
        const Tensors in = joined_tensors(part_of(slices, 0, s.carried + s.over), around);
        const Tensors dy = part_of(slices, s.carried + s.over, kept);
        const Pulled p = pulled_back(s.f, in, [&](const Tensors& results) {
          Tensors all;
          std::size_t next = 0;
          for (std::size_t i = 0; i < results.size(); ++i)
            all.push_back(i >= s.carried                 ? dy[i - s.carried]
                          : is_float(results[i].dtype()) ? c[next++]
                                                         : results[i]);
          return all;
        });
        Stepped out{without_empty(part_of(p.d, 0, s.carried)),
                    without_empty(part_of(p.d, s.carried, s.over))};
        const Tensors sums = without_empty(part_of(p.d, s.carried + s.over, s.captured));
        for (std::size_t i = 0; i < sums.size(); ++i)
          out.carried.push_back(c[moving + i] + sums[i]);
        return out;
      });
  Tensors found = part_of(back.carried, 0, moving);
  for (const Tensor& x : back.kept) found.push_back(flip(x, 0));
  return at_floats(inputs,
                   joined_tensors(found, part_of(back.carried, moving, start.size() - moving)));
}

}  // namespace

Scanned scan(const Tensors& carried, const Tensors& over,
             const std::function<Stepped(const Tensors&, const Tensors&)>& step,
             ScanOptions options, Where at) {
  return located(at, [&]() -> Scanned {
    Trace& t = Trace::current();
    const Dim steps = steps_of(t, over);
    if (options.unroll) return unrolled(t, carried, over, steps, step);
    std::vector<Type> types = types_of(carried);
    for (const Type& type : types_of(over))
      types.emplace_back(type.dtype,
                         Shape(Dims(type.shape.dims.begin() + 1, type.shape.dims.end())));
    const Body body(t, "the body of scan", types);
    Stepped done;
    body.call([&](const Tensors& in) {
      done = step(part_of(in, 0, carried.size()), part_of(in, carried.size(), over.size()));
      return Tensors();
    });
    if (done.carried.size() != carried.size())
      throw UserError("scan: a step carries on ", done.carried.size(), " tensors, expected ",
                      carried.size());
    body.finish(joined_tensors(done.carried, done.kept));
    const Values captured = captured_by(t, {&body});
    const Tensors around = t.tensors(captured);
    const StepFunction s{closed(t, body, captured), carried.size(), over.size(), captured.size(),
                         steps};
    const Scanned out = looped(t, carried, over, steps,
                               [&](const Tensors& c, const Tensors& x) { return s(c, x, around); });
    if (!body.trace->own_gradients().empty()) return out;
    const Tensors all = with_rule(t, joined_tensors(joined_tensors(carried, over), around),
                                  joined_tensors(out.carried, out.kept),
                                  [s](const Tensors& inputs, const Tensors&, const Tensors& d) {
                                    return scan_backward(s, inputs, d);
                                  });
    return {part_of(all, 0, carried.size()), part_of(all, carried.size(), done.kept.size())};
  });
}

}  // namespace hone
