#include "tensor/control.h"

#include "ops/common.h"
#include "tensor/body.h"

namespace hone {

using namespace bodies;

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
        ops::if_else(joined(Values{t.value(condition)}, captured), {{"then", on}, {"else", off}}));
    if (!then.trace->own_gradients().empty() || !other.trace->own_gradients().empty())
      return results;
    // The derivatives of the branch that was taken, which computes its values again.
    const Backward rule = [on, off](const Tensors& in, const Tensors&, const Tensors& d) {
      const Tensors arguments(in.begin() + 1, in.end());
      const auto branch = [&](const FunctionRef& f) {
        return [&, f] {
          return without_empty(pulled_back(*f, arguments, [&](const Tensors&) { return d; }).d);
        };
      };
      return at_floats(in, if_else(in[0], branch(on), branch(off)));
    };
    return with_rule(t, joined(Tensors{condition}, t.tensors(captured)), results, rule);
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
    return results_of_node(
        t, ops::while_loop(joined(t.values(x), captured), {{"condition", closed(t, go, captured)},
                                                           {"body", closed(t, next, captured)}}));
  });
}

}  // namespace hone
