#include "import/onnx/node/steps.h"

#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "ir/function.h"

namespace hone::onnx {

namespace {

constexpr std::int64_t most_unrolled = 16;

Stepped unrolled(const Step& step, const Values& inputs, Values states, const Values& constants,
                 std::int64_t steps, bool backwards) {
  Values ys(static_cast<std::size_t>(steps));
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t t = backwards ? steps - 1 - i : i;
    Values now;
    for (const Value& v : inputs) now.push_back(take_axis(v, 0, t));
    Stepped made = step(now, states, constants, integer(inputs[0].graph(), t));
    ys[static_cast<std::size_t>(t)] = unsqueeze(made.y, {0});
    states = made.states;
  }
  return {concat_values(ys, 0), states};
}

void add_params(Function& f, const Values& operands) {
  for (const Value& v : operands) f.add_param(v.type(), cat("p", f.params().size()));
}

Values params_of(const Function& f, std::size_t first, std::size_t count) {
  Values out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(f.param(first + i));
  return out;
}

// The type of a step's result, found by building one step in a temporary graph.
Type type_of_step(const Step& step, const Values& inputs, const Values& states,
                  const Values& constants) {
  Function f;
  auto param = [&](Type t, bool slice) {
    if (slice) t.shape.dims.erase(t.shape.dims.begin());
    return f.add_param(t, "");
  };
  Values now, s, k;
  for (const Value& v : inputs) now.push_back(param(v.type(), true));
  for (const Value& v : states) s.push_back(param(v.type(), false));
  for (const Value& v : constants) k.push_back(param(v.type(), false));
  return step(now, s, k, param(i64({}), false)).y.type();
}

// Carried: count, y, states. Constant: inputs, constants.
Stepped looped(const Step& step, const Values& inputs, const Values& states,
               const Values& constants, bool backwards) {
  hone::Graph& g = inputs[0].graph();
  const Dim steps = inputs[0].shape()[0];
  Type y = type_of_step(step, inputs, states, constants);
  y.shape.dims.insert(y.shape.dims.begin(), steps);
  Values operands = {integer(g, 0), integers_filled(g, y.dtype, y.shape, 0)};
  operands.insert(operands.end(), states.begin(), states.end());
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  operands.insert(operands.end(), constants.begin(), constants.end());
  auto go = std::make_shared<Function>(), body = std::make_shared<Function>();
  add_params(*go, operands);
  add_params(*body, operands);
  go->add_result(ops::lt(go->param(0), size_value(go->graph(), steps, DType::i64)));
  const std::size_t n = states.size(), m = inputs.size();
  Value count = body->param(0), time = count;
  if (backwards) time = size_value(body->graph(), steps - Dim(1), DType::i64) - count;
  Values now;
  for (const Value& v : params_of(*body, 2 + n, m))
    now.push_back(squeeze(slice_at(v, 0, time), {0}));
  Stepped made =
      step(now, params_of(*body, 2, n), params_of(*body, 2 + n + m, constants.size()), time);
  body->add_result(count + integer_like(count, 1));
  body->add_result(updated_at(body->param(1), unsqueeze(made.y, {0}), time));
  for (const Value& v : made.states) body->add_result(v);
  Value loop =
      ops::while_loop(operands, {{"condition", FunctionRef(go)}, {"body", FunctionRef(body)}});
  Stepped out{loop.result(1), {}};
  for (std::size_t i = 0; i < n; ++i) out.states.push_back(loop.result(2 + i));
  return out;
}

}  // namespace

Stepped over_time(const Step& step, const Values& inputs, Values states, const Values& constants,
                  bool backwards) {
  std::optional<std::int64_t> steps = inputs.at(0).shape()[0].as_number();
  if (steps && *steps > 0 && *steps <= most_unrolled)
    return unrolled(step, inputs, std::move(states), constants, *steps, backwards);
  return looped(step, inputs, states, constants, backwards);
}

}  // namespace hone::onnx
