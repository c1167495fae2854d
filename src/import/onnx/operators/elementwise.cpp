#include <algorithm>
#include <limits>

#include "import/onnx/node/broadcast.h"
#include "import/onnx/node/known.h"
#include "import/onnx/operators/cast.h"
#include "import/onnx/operators/list.h"

namespace hone::onnx {

namespace {

template <const Op& op>
Values unary(NodeContext& c) {
  c.ignore("consumed_inputs");
  return {op(c.in(0))};
}

// Before opset 7 operands broadcast only by attribute, from `axis` on.
Value placed(NodeContext& c, Value a, Value b) {
  std::int64_t axis = c.integer("axis", a.rank() - b.rank());
  if (axis < 0 || axis + b.rank() > a.rank())
    c.fail(cat("attribute 'axis' is ", axis, ", expected one where ", b.type(), " fits in ",
               a.type()));
  Dims dims = b.shape().dims;
  dims.resize(static_cast<std::size_t>(a.rank() - axis), Dim(1));
  return reshape_to(b, dims);
}

std::pair<Value, Value> operand_pair(NodeContext& c) {
  Value a = c.in(0), b = c.in(1);
  if (c.opset() < 7) {
    c.ignore("consumed_inputs");
    c.ignore("axis");  // relevant only for an operand of lower rank
    if (c.flag("broadcast") && b.rank() < a.rank()) b = placed(c, a, b);
  }
  return broadcast_operands(c, a, b);
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

// The exponent may have another dtype; the result has that of the base.
Values power(NodeContext& c) {
  auto [x, y] = operand_pair(c);
  const DType dtype = x.dtype();
  if (!is_float(dtype) && is_float(y.dtype()))
    return {cast_to(ops::pow(cast_to(x, DType::f64), cast_to(y, DType::f64)), dtype)};
  if (uniform_number(cast_to(y, dtype)) == 2.0) return {ops::square(x)};
  if (!is_float(dtype) || y.dtype() == dtype) return {ops::pow(x, cast_to(y, dtype))};
  // In the dtype of the base the exponent may become 0, or a whole number.
  const bool is_f64 = dtype == DType::f64 || y.dtype() == DType::f64;
  const DType common = is_f64 ? DType::f64 : DType::f32;
  return {cast_to(ops::pow(cast_to(x, common), cast_to(y, common)), dtype)};
}

// Of integers, too.
Values erf_import(NodeContext& c) {
  const Value x = c.in(0);
  if (is_float(x.dtype())) return {ops::erf(x)};
  return {cast_to(ops::erf(cast_to(x, DType::f32)), x.dtype())};
}

template <const Op& op>
Values variadic(NodeContext& c) {
  c.ignore("consumed_inputs");
  const Values all = broadcast_operands(c, c.all_inputs());
  Value out = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) out = op(out, all[i]);
  return {out};
}

Values mean_of_operands(NodeContext& c) {
  Value sum = variadic<ops::add>(c)[0];
  return {sum / static_cast<double>(c.inputs())};
}

// From opset 28 on floats are allowed without fmod: a zero result then has the sign of the divisor.
Values modulo(NodeContext& c) {
  auto [a, b] = operand_pair(c);
  if (c.flag("fmod")) return {ops::rem(a, b)};
  Value r = ops::mod(a, b);
  if (c.opset() < 28 || !is_float(r.dtype())) return {r};
  Value zero = constant_like(r, 0);
  Value signed_zero = ops::select(Values{ops::lt(b, zero), constant_like(r, -0.0), zero});
  return {ops::select(Values{ops::eq(r, zero), signed_zero, r})};
}

Values shift_by_direction(NodeContext& c) {
  std::string_view way = c.text("direction", "");
  if (way == "LEFT") return binary<ops::shift_left>(c);
  if (way == "RIGHT") return binary<ops::shift_right>(c);
  c.bad_attribute("direction", way, "LEFT or RIGHT");
}

Values where_import(NodeContext& c) {
  return {ops::select(broadcast_operands(c, Values{c.in(0), c.in(1), c.in(2)}))};
}

// Sizes that exporters compute in floats, such as ceil(8 / 2.0), remain sizes where they are known.
Value integers_of_floats(Value x, Value made) {
  constexpr std::int64_t most = 64;
  const std::optional<std::int64_t> count = made.shape().count().as_number();
  if (!is_float(x.dtype()) || is_float(made.dtype()) || !count || *count > most) return made;
  const std::optional<Array> known = known_array(made);
  return known ? constant(made.graph(), *known) : made;
}

// Before opset 6 the type is a name, such as "FLOAT".
DType cast_target(NodeContext& c) {
  if (c.opset() >= 6) return c.dtype("to");
  const std::string_view name = c.text("to", "");
  const std::optional<std::int32_t> number = data_type_named(name);
  if (!number) c.bad_attribute("to", name, "the name of an ONNX type, such as 'FLOAT'");
  if (const std::optional<DType> t = dtype_of(*number)) return *t;
  c.unsupported(cat("attribute 'to' is '", name, "', a type that is not supported"));
}

Values cast_import(NodeContext& c) {
  return {integers_of_floats(c.in(0), cast_value(c, c.in(0), cast_target(c)))};
}

Values cast_like(NodeContext& c) { return {cast_value(c, c.in(0), c.in(1).dtype())}; }

Values clip(NodeContext& c) {
  c.ignore("consumed_inputs");
  Value x = c.in(0);
  auto bound = [&](std::size_t input, std::string_view attribute) -> Value {
    if (c.has(input)) return broadcast_to(reshape_to(c.in(input), {}), x.shape());
    if (!c.has_attribute(attribute)) return Value();
    return constant_like(x, c.real(attribute, 0));
  };
  if (Value low = bound(1, "min")) x = ops::maximum(x, low);
  if (Value high = bound(2, "max")) x = ops::minimum(x, high);
  return {x};
}

Values leaky_relu(NodeContext& c) {
  c.ignore("consumed_inputs");
  return {ops::leaky_relu(c.in(0), {{"alpha", c.real("alpha", 0.01)}})};
}

Values prelu(NodeContext& c) {
  c.ignore("consumed_inputs");
  Value x = c.in(0), slope = c.in(1);
  if (c.opset() < 7 && slope.rank() == 1 && x.rank() > 2) {  // one slope per channel
    Dims dims(static_cast<std::size_t>(x.rank() - 1), Dim(1));
    dims[0] = slope.shape()[0];
    slope = reshape_to(slope, dims);
  }
  if (x.rank() == 0 && slope.shape().count() == Dim(1)) slope = reshape_to(slope, {});
  slope = broadcast_operand_to(c, slope, x.shape());
  return {ops::select(Values{ops::lt(x, constant_like(x, 0)), x * slope, x})};
}

// a * (exp(x) - 1) for x below 0.
Value exponential_below(Value x, double a) {
  Value zero = constant_like(x, 0);
  return (ops::exp(ops::minimum(x, zero)) - 1.0) * a;
}

Value chosen_below(Value x, Value below, Value above) {
  return ops::select(Values{ops::lt(x, constant_like(x, 0)), below, above});
}

Values elu(NodeContext& c) {
  c.ignore("consumed_inputs");
  Value x = c.in(0);
  return {chosen_below(x, exponential_below(x, c.real("alpha", 1)), x)};
}

Values selu(NodeContext& c) {
  c.ignore("consumed_inputs");
  Value x = c.in(0);
  double alpha = c.real("alpha", c.opset() < 6 ? 1.6732 : 1.67326319217681884765625);
  double gamma = c.real("gamma", c.opset() < 6 ? 1.0507 : 1.05070102214813232421875);
  return {chosen_below(x, exponential_below(x, alpha), x) * gamma};
}

Values celu(NodeContext& c) {
  Value x = c.in(0);
  double alpha = c.real("alpha", 1);
  if (alpha == 0) c.bad_attribute("alpha", alpha, "a nonzero number");
  return {chosen_below(x, exponential_below(x / alpha, alpha), x)};
}

Value between_0_and_1(Value y) {
  return ops::minimum(ops::maximum(y, constant_like(y, 0)), constant_like(y, 1));
}

Values hard_sigmoid(NodeContext& c) {
  c.ignore("consumed_inputs");
  return {between_0_and_1(c.in(0) * c.real("alpha", 0.2) + c.real("beta", 0.5))};
}

Values hard_swish(NodeContext& c) {
  Value x = c.in(0);
  return {x * between_0_and_1(x * double{1.0f / 6} + 0.5)};
}

Values softsign(NodeContext& c) {
  Value x = c.in(0);
  return {x / (ops::abs(x) + 1.0)};
}

Values mish(NodeContext& c) {
  Value x = c.in(0);
  return {x * ops::tanh(ops::softplus(x))};
}

Values thresholded_relu(NodeContext& c) {
  Value x = c.in(0);
  Value kept = ops::lt(constant_like(x, c.real("alpha", 1)), x);
  return {ops::select(Values{kept, x, constant_like(x, 0)})};
}

// Small floats cannot be computed with; f32 holds them exactly.
Value computable(Value x) { return is_small(x.dtype()) ? cast_to(x, DType::f32) : x; }

Values is_nan(NodeContext& c) {
  Value x = computable(c.in(0));
  return {ops::ne(x, x)};
}

Values is_infinite(NodeContext& c) {
  Value x = computable(c.in(0));
  auto equals = [&](double infinity) { return ops::eq(x, constant_like(x, infinity)); };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  bool above = c.flag("detect_positive", true), below = c.flag("detect_negative", true);
  if (above && below) return {ops::bit_or(equals(infinity), equals(-infinity))};
  if (above) return {equals(infinity)};
  if (below) return {equals(-infinity)};
  return {broadcast_to(constant(c.graph(), Array::scalar_int(0, DType::b1)), x.shape())};
}

Values gelu(NodeContext& c) {
  std::string_view how = c.text("approximate", "none");
  if (how == "tanh") return {ops::gelu_tanh(c.in(0))};
  if (how != "none") c.bad_attribute("approximate", how, "none or tanh");
  return {ops::gelu(c.in(0))};
}

Value swished(NodeContext& c) {
  Value x = c.in(0);
  double alpha = c.real("alpha", 1);
  return alpha == 1 ? ops::silu(x) : x * ops::sigmoid(x * alpha);
}

Values swish(NodeContext& c) { return {swished(c)}; }
Values swish_gate(NodeContext& c) { return {swished(c) * c.in(1)}; }

constexpr ImportEntry elementwise_table[] = {
    {"Not", unary<ops::bit_not>},
    {"Pow", power},
    {"Mod", modulo, 10},
    {"And", binary<ops::bit_and>},
    {"Or", binary<ops::bit_or>},
    {"Xor", binary<ops::bit_xor>},
    {"Less", comparison<ops::lt, false>},
    {"LessOrEqual", comparison<ops::le, false>, 12},
    {"Greater", comparison<ops::lt, true>},
    {"GreaterOrEqual", comparison<ops::le, true>, 12},
    {"Max", variadic<ops::maximum>},
    {"Min", variadic<ops::minimum>},
    {"Sum", variadic<ops::add>},
    {"Mean", mean_of_operands},
    {"Where", where_import, 9},
    {"Cast", cast_import},
    {"Clip", clip},
    {"LeakyRelu", leaky_relu},
    {"PRelu", prelu},
    {"Erf", erf_import, 9},
    {"Elu", elu},
    {"HardSigmoid", hard_sigmoid},
    {"HardSwish", hard_swish, 14},
    {"Gelu", gelu, 20},
    {"Swish", swish, 24},
    {"SwiGLU", swish_gate, 28},
    {"CastLike", cast_like, 15},
    {"BitShift", shift_by_direction, 11},
    {"BitwiseAnd", binary<ops::bit_and>, 18},
    {"BitwiseOr", binary<ops::bit_or>, 18},
    {"BitwiseXor", binary<ops::bit_xor>, 18},
    {"BitwiseNot", unary<ops::bit_not>, 18},
    {"Selu", selu},
    {"Celu", celu, 12},
    {"Softsign", softsign},
    {"Mish", mish, 18},
    {"ThresholdedRelu", thresholded_relu},
    {"IsNaN", is_nan, 9},
    {"IsInf", is_infinite, 10},
};

}  // namespace

std::span<const ImportEntry> elementwise_imports() {
  static const std::vector<ImportEntry> all = [] {
    std::vector<ImportEntry> out(std::begin(elementwise_table), std::end(elementwise_table));
    for (const Op* op : all_ops())
      if (!op->onnx.name.empty() &&
          std::ranges::find(elementwise_table, op->onnx.name, &ImportEntry::op) ==
              std::end(elementwise_table))
        out.push_back(
            {.op = op->onnx.name, .import = nullptr, .since = op->onnx.since, .same = op});
    return out;
  }();
  return all;
}

Values import_same(NodeContext& c, const Op& op) {
  if (op.onnx.operands == 2) {
    auto [a, b] = operand_pair(c);
    return {op(a, b)};
  }
  c.ignore("consumed_inputs");
  Values operands;
  for (std::size_t i = 0; i < op.onnx.operands; ++i) operands.push_back(c.in(i));
  return {op(operands)};
}

}  // namespace hone::onnx
