#include <algorithm>

#include "test/random/makers.h"

namespace hone::fuzz {

namespace {

// Gives a closed function parameters with the types and sample values of `operands`.
void add_params(Builder& body, Builder& outer, const Values& operands) {
  for (const Value& v : operands) body.param(v.type(), outer.value(v));
}

Values some_operands(Builder& b, int most) {
  Values out;
  for (int i = b.random.between(1, most); i > 0; --i) out.push_back(b.recent());
  return out;
}

FunctionRef closed(Builder& body, const Values& results) {
  return std::make_shared<const Function>(rebuilt(body.function(), results, false));
}

Value scalar_condition(Builder& b) {
  Value v = b.find([](Value x) { return x.type() == b1(Shape{}); });
  if (v && b.random.chance(60)) return v;
  Value x = b.numeric();
  Value most =
      reduce_axes(b.random.chance(50) ? ops::reduce_max : ops::reduce_sum, flatten(x), {0});
  return ops::lt(constant_like(most, b.random.of({0.0, 1.0, 3.0})), most);
}

// A branch that must not be taken, because its condition never holds.
Value refused(Builder& b, const Op& op) {
  Value x = b.real();
  const Values operands = {x};
  Builder yes(b.random, b.style, true);
  Builder no(b.random, b.style, true);
  add_params(yes, b, operands);
  add_params(no, b, operands);
  Attrs attrs = {{"message", std::string("a branch that is never taken")},
                 {"dtype", x.dtype()},
                 {"shape", x.shape().dims}};
  Value never = yes.graph().intern(op, {}, attrs);
  Value squares = ops::reduce_sum(ops::abs(flatten(x)), {{"axes", Dims{0}}});
  Value condition = ops::lt(squares, constant_like(squares, -1));
  return ops::if_else(
      Values{condition, x},
      {{"then", closed(yes, {never})}, {"else", closed(no, {ops::tanh(no.function().param(0))})}});
}

Value branched(Builder& b, const Op& op) {
  Value condition = scalar_condition(b);
  Values operands = some_operands(b, 3);
  Builder yes(b.random, b.style, true);
  Builder no(b.random, b.style, true);
  add_params(yes, b, operands);
  add_params(no, b, operands);
  grow(yes, static_cast<int>(operands.size()) + b.random.between(1, 5));
  grow(no, static_cast<int>(operands.size()) + b.random.between(0, 5));
  Values yes_results, no_results;
  for (int i = b.random.of({1, 1, 2, 3}); i > 0; --i) {
    yes_results.push_back(yes.recent());
    no_results.push_back(no.operand(yes_results.back().type()));
  }
  operands.insert(operands.begin(), condition);
  Value y = op(operands, {{"then", closed(yes, yes_results)}, {"else", closed(no, no_results)}});
  for (std::size_t i = 1; i < y.result_count(); ++i) b.keep(y.result(i));
  return y;
}

// A loop that counts to a small number and carries values that the body changes.
Value looped(Builder& b, const Op& op) {
  Values carried = some_operands(b, 2);
  Values constants = b.random.chance(50) ? some_operands(b, 1) : Values{};
  Value end = constant(b.graph(), Array::scalar_int(b.random.between(0, 4), DType::i64));
  if (b.random.chance(50)) {
    Value n = b.find([](Value x) { return x.type() == i64(Shape{}); });
    if (n) end = ops::minimum(n, end);
  }
  Values operands = {constant(b.graph(), Array::scalar_int(0, DType::i64))};
  operands.insert(operands.end(), carried.begin(), carried.end());
  operands.insert(operands.end(), constants.begin(), constants.end());
  operands.push_back(end);

  Builder go(b.random, b.style, true);
  add_params(go, b, operands);
  Value going = ops::lt(go.function().param(0), go.function().param(operands.size() - 1));
  Builder body(b.random, b.style, true);
  add_params(body, b, operands);
  grow(body, static_cast<int>(operands.size()) + b.random.between(1, 6));
  Values next = {body.function().param(0) + integer_like(body.function().param(0), 1)};
  for (const Value& v : carried) {
    Value to = body.operand(v.type());
    // A value that grows in every iteration would soon overflow.
    next.push_back(is_float(v.dtype()) && b.random.chance(80) ? ops::tanh(to) : to);
  }
  Value y = op(operands, {{"condition", closed(go, {going})}, {"body", closed(body, next)}});
  for (std::size_t i = 2; i < y.result_count(); ++i) b.keep(y.result(i));
  return y.result(1);
}

constexpr Maker control_table[] = {
    {&ops::if_else, 8, branched},
    {&ops::while_loop, 6, looped},
    {&ops::refuse, 1, refused},
};

}  // namespace

std::span<const Maker> control_makers() { return control_table; }

}  // namespace hone::fuzz
