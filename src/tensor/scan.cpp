// Steps over an axis, and their derivatives: what a step computes that its derivative needs is kept
// by the loop, as further results, which are dropped where nobody asks for a derivative.
#include <algorithm>
#include <optional>

#include "ops/common.h"
#include "tensor/body.h"
#include "tensor/control.h"
#include "tensor/functions.h"
#include "tensor/linearized_step.h"
#include "tensor/step_products.h"

namespace hone {

using namespace bodies;

namespace {

using StepLambda = std::function<Stepped(const Tensors& carried, const Tensors& slices)>;

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

Scanned unrolled(Trace& t, Tensors carried, const Tensors& over, const Dim& steps, bool reverse,
                 const StepLambda& step) {
  if (!steps.is_number() || steps.number() < 1)
    throw UserError("scan: ", steps, " steps cannot be unrolled, expected a number from 1 on");
  std::vector<Tensors> kept;
  for (std::int64_t k = 0; k < steps.number(); ++k) {
    const std::int64_t i = reverse ? steps.number() - 1 - k : k;
    Tensors slices;
    for (const Tensor& x : over) slices.push_back(select(x, 0, i));
    const TraceScope users_lines(t.shared_from_this());
    Stepped done = step(carried, slices);
    carried = std::move(done.carried);
    kept.resize(done.kept.size());
    for (std::size_t n = 0; n < kept.size(); ++n) kept[n].push_back(done.kept[n]);
  }
  Scanned out{std::move(carried), {}};
  for (Tensors& k : kept) {
    if (reverse) std::ranges::reverse(k);
    out.kept.push_back(stack(k));
  }
  return out;
}

// Steps in a loop. The step is recorded once, in the loop's body.
Scanned looped(Trace& t, const Tensors& carried, const Tensors& over, const Dim& steps,
               bool reverse, const StepLambda& step) {
  std::vector<Type> types = types_of(carried);
  types.insert(types.begin(), i64({}));
  Body body(t, "the body of scan", types);
  Graph& graph = body.trace->graph();
  const Value count = body.trace->value(body.in[0]), one = integer_like(count, 1);
  const Value i = reverse ? size_value(graph, steps, DType::i64) - one - count : count;
  Stepped done;
  body.call([&](const Tensors& in) {
    done = step(Tensors(in.begin() + 1, in.end()),
                slices_at(*body.trace, over, body.trace->tensor(i)));
    return Tensors();
  });
  // The results so far, which every step adds to.
  Tensors results = done.carried, start = carried;
  results.insert(results.begin(), body.trace->tensor(count + one));
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
  const Tensors out = results_of_node(
      t, ops::while_loop(joined(t.values(start), captured), {{"condition", closed(t, go, captured)},
                                                             {"body", closed(t, body, captured)}}));
  const std::size_t n = carried.size();
  return {part_of(out, 1, n), part_of(out, 1 + n, done.kept.size())};
}

// The function's results, of which the first are carried on.
Stepped stepped(const FunctionRef& f, const Tensors& operands, std::size_t carried) {
  Trace& t = Trace::current();
  const Tensors all = t.tensors(inline_call(t.graph(), *f, t.values(operands)));
  return {part_of(all, 0, carried), part_of(all, carried, all.size() - carried)};
}

// What was given to a scan: the carried tensors, those that are stepped over, those captured.
struct Inputs {
  Tensors carried, over, around;
  Inputs(const Step& s, const Tensors& all)
      : carried(part_of(all, 0, s.carried)),
        over(part_of(all, s.carried, s.over)),
        around(part_of(all, s.carried + s.over, s.captured)) {}
};

std::size_t float_count(const Tensors& tensors) {
  return static_cast<std::size_t>(
      std::ranges::count_if(tensors, [](const Tensor& x) { return is_float(x.dtype()); }));
}

Tensors floats_of(const Tensors& tensors) {
  Tensors out;
  for (const Tensor& x : tensors)
    if (is_float(x.dtype())) out.push_back(x);
  return out;
}

// Backwards from step to step: `backward` gives, of derivatives of what was carried on and one
// step's slices, what is carried on, what is kept (`kept` tensors), what is added to the sums, and
// what is kept besides.
Scanned stepped_back(const Tensors& d, std::size_t kept, const Tensors& sums,
                     const Tensors& of_steps, bool reverse,
                     const std::function<Tensors(const Tensors& dy, const Tensors&)>& backward) {
  const std::size_t moving = d.size();
  return scan(joined(d, sums), of_steps,
              [&](const Tensors& c, const Tensors& slices) -> Stepped {
                const Tensors found = backward(part_of(c, 0, moving), slices);
                Stepped out{part_of(found, 0, moving), part_of(found, moving, kept)};
                std::size_t next = moving + kept;
                for (std::size_t i = 0; i < sums.size(); ++i)
                  out.carried.push_back(c[moving + i] + found[next++]);
                out.kept = joined(out.kept, part_of(found, next, found.size() - next));
                return out;
              },
              {.reverse = !reverse});
}

bool is_zero(const Tensor& x) { return uniform_number(Trace::current().value(x)) == 0.0; }

// The derivatives of a scan whose loop kept what they need, after the results of its user.
Tensors scan_backward(const Step& s, const LinearizedStep& l, bool reverse, const Tensors& inputs,
                      const Tensors& results, const Tensors& d) {
  const Inputs in(s, inputs);
  Tensors of_steps = joined(part_of(results, s.carried + s.kept, l.saved()), in.over);
  std::vector<bool> is_left_out(float_count(in.carried), false);
  for (const Tensor& x : part_of(d, s.carried, s.kept)) {
    if (!is_float(x.dtype())) continue;
    is_left_out.push_back(is_zero(x));
    if (!is_left_out.back()) of_steps.push_back(x);
  }
  const Tensors moving = floats_of(part_of(d, 0, s.carried)), around = floats_of(in.around);
  const std::size_t before = l.saved() + s.over, sliced = float_count(in.over);
  const StepProducts products(*l.backward(is_left_out), {moving.size(), sliced}, before);
  Tensors sums;
  for (std::size_t i = 0; i < around.size(); ++i)
    if (products.stays(i)) sums.push_back(zeros_like(around[i]));
  const Scanned back =
      stepped_back(moving, sliced, sums, of_steps, reverse,
                   [&](const Tensors& carried_on, const Tensors& slices) {
                     const Tensors kept = part_of(slices, before, slices.size() - before);
                     const Tensors operands = joined(joined(part_of(slices, 0, before), in.around),
                                                     joined(carried_on, kept));
                     return stepped(products.function(), operands, 0).kept;
                   });
  Tensors found = joined(part_of(back.carried, 0, moving.size()), part_of(back.kept, 0, sliced));
  std::size_t next = moving.size();
  for (std::size_t i = 0; i < around.size(); ++i)
    found.push_back(products.stays(i) ? back.carried[next++]
                                      : products.sum(i, of_steps, back.kept));
  return at_floats(inputs, found);
}

// The same when derivatives of what was kept for a derivative are asked for, too: by a scan that
// keeps what each step was given, and another one backwards which computes the steps again.
Tensors scan_backward_again(const Step& s, bool reverse, const Tensors& inputs, const Tensors& d) {
  const Inputs in(s, inputs);
  const Scanned given =
      scan(in.carried, in.over,
           [&](const Tensors& c, const Tensors& slices) -> Stepped {
             return {stepped(s.f, joined(joined(c, slices), in.around), s.carried).carried, c};
           },
           {.reverse = reverse});
  const Tensors of_steps = joined(joined(given.kept, in.over), part_of(d, s.carried, s.kept));
  const Tensors moving = floats_of(part_of(d, 0, s.carried));
  Tensors sums;
  for (const Tensor& x : floats_of(in.around)) sums.push_back(zeros_like(x));
  const Scanned back = stepped_back(
      moving, float_count(in.over), sums, of_steps, reverse,
      [&](const Tensors& carried_on, const Tensors& slices) {
        const std::size_t before = s.carried + s.over;
        const Tensors kept = part_of(slices, before, s.kept);
        return without_empty(
            pulled_back(*s.f, joined(part_of(slices, 0, before), in.around), [&](const Tensors& y) {
              const Tensors first = at_floats(part_of(y, 0, s.carried), carried_on);
              return joined(first, kept);
            }).d);
      });
  return at_floats(inputs, joined(joined(part_of(back.carried, 0, moving.size()), back.kept),
                                  part_of(back.carried, moving.size(), sums.size())));
}

// The loop, with its derivative if the step has one; if not, who asks for it gets the reason.
Scanned differentiable_loop(Trace& t, const Tensors& inputs, const Step& s, const Dim& steps,
                            bool reverse, Where at) {
  const Inputs in(s, inputs);
  std::optional<LinearizedStep> l;
  std::string reason;
  try {
    l = linearized(t, s, at);
  } catch (const UserError& e) {
    reason = e.what();
  }
  Step whole = s;
  if (l) {
    whole.f = l->forward();
    whole.kept += l->saved();
  }
  const Scanned out =
      looped(t, in.carried, in.over, steps, reverse, [&](const Tensors& c, const Tensors& slices) {
        return stepped(whole.f, joined(joined(c, slices), in.around), s.carried);
      });
  const auto rule = [=](const Tensors& x, const Tensors& y, const Tensors& d) {
    if (!l) throw LocatedError(reason);
    return std::ranges::all_of(part_of(d, s.carried + s.kept, l->saved()), is_zero)
               ? scan_backward(s, *l, reverse, x, y, d)
               : scan_backward_again(whole, reverse, x, d);
  };
  const Tensors all = with_rule(t, inputs, joined(out.carried, out.kept), rule);
  return {part_of(all, 0, s.carried), part_of(all, s.carried, s.kept)};
}

}  // namespace

Scanned scan(const Tensors& carried, const Tensors& over,
             const std::function<Stepped(const Tensors&, const Tensors&)>& step,
             ScanOptions options, Where at) {
  return located(at, [&]() -> Scanned {
    Trace& t = Trace::current();
    const Dim steps = steps_of(t, over);
    if (options.unroll) return unrolled(t, carried, over, steps, options.reverse, step);
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
    body.finish(joined(done.carried, done.kept));
    const Values captured = captured_by(t, {&body});
    const Tensors around = t.tensors(captured);
    const Step s{closed(t, body, captured), carried.size(), over.size(), captured.size(),
                 done.kept.size()};
    const Tensors inputs = joined(joined(carried, over), around);
    if (body.trace->own_gradients().empty())
      return differentiable_loop(t, inputs, s, steps, options.reverse, at);
    return looped(t, carried, over, steps, options.reverse,
                  [&](const Tensors& c, const Tensors& x) {
                    return stepped(s.f, joined(joined(c, x), around), s.carried);
                  });
  });
}

}  // namespace hone
