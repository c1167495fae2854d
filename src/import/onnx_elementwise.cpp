#include <limits>

#include "import/onnx_context.h"

namespace hone::onnx {

namespace {

template <const Op& op>
Values unary(NodeContext& c) {
  return {op(c.in(0))};
}

// Before opset 7 operands broadcast only by attribute, along `axis`.
std::pair<Value, Value> operand_pair(NodeContext& c) {
  Value a = c.in(0), b = c.in(1);
  if (c.opset() < 7 && c.integer("broadcast", 0) && b.rank() < a.rank()) {
    std::int64_t axis = c.integer("axis", a.rank() - b.rank());
    Dims dims = b.shape().dims;
    while (static_cast<std::int64_t>(dims.size()) + axis < a.rank()) dims.push_back(1);
    b = reshape_to(b, dims);
  }
  return broadcast_pair(a, b, c.node().op);
}

template <const Op& op>
Values binary(NodeContext& c) {
  auto [a, b] = operand_pair(c);
  return {op(a, b)};
}

template <const Op& op, bool exchanged>
Values comparison(NodeContext& c) {
  auto [a, b] = operand_pair(c);
  return {exchanged ? op(b, a) : op(a, b)};
}

// x to a power that may have another dtype than x.
Values power(NodeContext& c) {
  Value x = c.in(0), y = c.in(1);
  if (y.dtype() != x.dtype()) y = cast_to(y, x.dtype());
  if (uniform_number(y) == 2.0) {
    Shape shape = broadcast_shape(c.graph(), x.shape(), y.shape(), "Pow");
    Value base = broadcast_to(x, shape);
    return {ops::square(base)};
  }
  auto [a, b] = broadcast_pair(x, y, "Pow");
  return {ops::pow(a, b)};
}

template <const Op& op>
Values variadic(NodeContext& c) {
  Values all = broadcast_all(c.all_inputs(), c.node().op);
  if (all.empty()) c.fail("needs at least one operand");
  Value out = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) out = op(out, all[i]);
  return {out};
}

Values mean_of_operands(NodeContext& c) {
  Value sum = variadic<ops::add>(c)[0];
  return {sum / static_cast<double>(c.inputs())};
}

Values modulo(NodeContext& c) {
  auto [a, b] = operand_pair(c);
  return {c.integer("fmod", 0) ? ops::rem(a, b) : ops::mod(a, b)};
}

Values where_import(NodeContext& c) { return {where(c.in(0), c.in(1), c.in(2))}; }

Values cast_import(NodeContext& c) {
  std::int64_t to = c.integer("to", 0);
  std::optional<DType> dtype = dtype_of(to);
  if (!dtype) c.fail(cat("casting to ", data_type_name(to), " is not supported yet"));
  return {cast_to(c.in(0), *dtype)};
}

Values clip(NodeContext& c) {
  Value x = c.in(0);
  auto bound = [&](std::size_t input, std::string_view attribute) -> Value {
    if (c.has(input)) return broadcast_to(c.in(input), x.shape());
    const Attribute* a = c.node().find(attribute);
    return a ? constant_like(x, a->real) : Value();
  };
  if (Value low = bound(1, "min")) x = ops::maximum(x, low);
  if (Value high = bound(2, "max")) x = ops::minimum(x, high);
  return {x};
}

Values leaky_relu(NodeContext& c) {
  return {ops::leaky_relu(c.in(0), {{"alpha", c.real("alpha", 0.01)}})};
}

Values prelu(NodeContext& c) {
  Value x = c.in(0), slope = broadcast_to(c.in(1), x.shape());
  return {ops::select(ops::lt(x, constant_like(x, 0)), x * slope, x)};
}

Values elu(NodeContext& c) {
  Value x = c.in(0), zero = constant_like(x, 0);
  Value below = (ops::exp(ops::minimum(x, zero)) - 1.0) * c.real("alpha", 1.0);
  return {ops::select(ops::lt(x, zero), below, x)};
}

Values hard_sigmoid(NodeContext& c) {
  Value y = c.in(0) * c.real("alpha", 0.2) + c.real("beta", 0.5);
  return {ops::minimum(ops::maximum(y, constant_like(y, 0)), constant_like(y, 1))};
}

Values hard_swish(NodeContext& c) {
  Value x = c.in(0), y = x * (1.0 / 6) + 0.5;
  return {x * ops::minimum(ops::maximum(y, constant_like(y, 0)), constant_like(y, 1))};
}

Values gelu(NodeContext& c) {
  return {c.text("approximate", "none") == "tanh" ? ops::gelu_tanh(c.in(0)) : ops::gelu(c.in(0))};
}

constexpr ImportEntry entries[] = {
    {"Abs", unary<ops::abs>},
    {"Neg", unary<ops::neg>},
    {"Sign", unary<ops::sign>},
    {"Exp", unary<ops::exp>},
    {"Log", unary<ops::log>},
    {"Sqrt", unary<ops::sqrt>},
    {"Reciprocal", unary<ops::recip>},
    {"Tanh", unary<ops::tanh>},
    {"Sigmoid", unary<ops::sigmoid>},
    {"Erf", unary<ops::erf>},
    {"Sin", unary<ops::sin>},
    {"Cos", unary<ops::cos>},
    {"Floor", unary<ops::floor>},
    {"Ceil", unary<ops::ceil>},
    {"Round", unary<ops::round>},
    {"Relu", unary<ops::relu>},
    {"Softplus", unary<ops::softplus>},
    {"Not", unary<ops::bit_not>},
    {"Add", binary<ops::add>},
    {"Sub", binary<ops::sub>},
    {"Mul", binary<ops::mul>},
    {"Div", binary<ops::div>},
    {"Pow", power},
    {"Mod", modulo},
    {"And", binary<ops::bit_and>},
    {"Or", binary<ops::bit_or>},
    {"Xor", binary<ops::bit_xor>},
    {"Equal", binary<ops::eq>},
    {"Less", comparison<ops::lt, false>},
    {"LessOrEqual", comparison<ops::le, false>},
    {"Greater", comparison<ops::lt, true>},
    {"GreaterOrEqual", comparison<ops::le, true>},
    {"Max", variadic<ops::maximum>},
    {"Min", variadic<ops::minimum>},
    {"Sum", variadic<ops::add>},
    {"Mean", mean_of_operands},
    {"Where", where_import},
    {"Cast", cast_import},
    {"Clip", clip},
    {"LeakyRelu", leaky_relu},
    {"PRelu", prelu},
    {"Elu", elu},
    {"HardSigmoid", hard_sigmoid},
    {"HardSwish", hard_swish},
    {"Gelu", gelu},
};

}  // namespace

std::span<const ImportEntry> elementwise_imports() { return entries; }

}  // namespace hone::onnx
