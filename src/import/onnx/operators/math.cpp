// Functions of one number without a core operation, and row operations.
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>

#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/node/open.h"
#include "import/onnx/operators/list.h"

namespace hone::onnx {

namespace {

// c0 + c1 x + c2 x^2 + ...
Value polynomial(Value x, std::initializer_list<double> coefficients) {
  Value y;
  for (auto c = std::rbegin(coefficients); c != std::rend(coefficients); ++c)
    y = y ? y * x + *c : constant_like(x, *c);
  return y;
}

Value chosen(Value condition, Value a, Value b) { return ops::select(Values{condition, a, b}); }
Value less(Value x, double y) { return ops::lt(x, constant_like(x, y)); }
Value with_sign_of(Value x, Value y) { return chosen(less(x, 0), -y, y); }

// log(1 + u): the digits of u lost in 1 + u are restored by a factor (W. Kahan).
Value log_of_one_plus(Value u) {
  Value w = u + 1.0, d = w - 1.0;
  Value zero = ops::eq(d, constant_like(d, 0)), infinite = ops::eq(w, u);
  Value y = ops::log(w) * (u / chosen(zero, constant_like(d, 1), d));
  return chosen(infinite, ops::log(w), chosen(zero, u, y));
}

// Rational approximation on |x| <= 0.66 and argument reduction for other x, as in Cephes.
Value arc_tangent(Value x) {
  Value a = ops::abs(x);
  Value large = ops::lt(constant_like(a, 2.414213562373095), a), middle = less(a, 0.66);
  Value reduced = chosen(large, -1.0 / a, chosen(middle, a, (a - 1.0) / (a + 1.0)));
  Value base = chosen(large, constant_like(a, std::numbers::pi / 2),
                      chosen(middle, constant_like(a, 0), constant_like(a, std::numbers::pi / 4)));
  Value z = reduced * reduced;
  Value p =
      polynomial(z, {-64.85021904942025371773, -122.8866684490136173410, -75.00855792314704667340,
                     -16.15753718733365076637, -0.8750608600031904122785});
  Value q =
      polynomial(z, {194.5506571482613964425, 485.3903996359136964868, 432.8810604912902668951,
                     165.0270098316988542046, 24.85846490142306297962, 1.0});
  Value y = base + (reduced + reduced * z * (p / q));
  return with_sign_of(x, y);
}

// Computes at least in f32: f16 and bf16 cannot hold the intermediate results.
template <Value (*f)(Value)>
Values in_wide(NodeContext& c) {
  Value x = c.in(0);
  return {cast_to(f(cast_to(x, sum_dtype(x.dtype()))), x.dtype())};
}

Value tangent(Value x) { return ops::sin(x) / ops::cos(x); }

Value arc_sine(Value x) {
  Value root = ops::sqrt((1.0 - x) * (1.0 + x));
  return arc_tangent(x / (root + 1.0)) * 2.0;
}

Value arc_cosine(Value x) { return arc_tangent(ops::sqrt((1.0 - x) / (1.0 + x))) * 2.0; }

// exp(|x|) / 2 and exp(-|x|) / 2, without overflow in intermediate results.
std::pair<Value, Value> halves_of_exp(Value x) {
  Value e = ops::exp(ops::abs(x) - std::numbers::ln2);
  return {e, 0.25 / e};
}

Value hyperbolic_sine(Value x) {
  auto [up, down] = halves_of_exp(x);
  Value z = x * x;
  Value small =
      x * polynomial(z, {1, 1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880, 1.0 / 39916800,
                         1.0 / 6227020800.0, 1.0 / 1307674368000.0, 1.0 / 355687428096000.0});
  return chosen(less(ops::abs(x), 1), small, with_sign_of(x, up - down));
}

Value hyperbolic_cosine(Value x) {
  auto [up, down] = halves_of_exp(x);
  return up + down;
}

Value area_sine(Value x) {
  Value a = ops::abs(x), square = a * a;
  Value near = log_of_one_plus(a + square / (ops::sqrt(square + 1.0) + 1.0));
  Value far = ops::log(a) + std::numbers::ln2;  // the square would overflow
  return with_sign_of(x, chosen(less(a, 1e9), near, far));
}

Value area_cosine(Value x) {
  Value t = x - 1.0;
  Value near = log_of_one_plus(t + ops::sqrt(t * (t + 2.0)));
  Value far = ops::log(x) + std::numbers::ln2;
  return chosen(less(x, 1e9), near, far);
}

Value area_tangent(Value x) {
  Value a = ops::abs(x);
  return with_sign_of(x, log_of_one_plus(a * 2.0 / (1.0 - a)) * 0.5);
}

Values shrink(NodeContext& c) {
  Value x = c.in(0);
  const double bias = c.real("bias", 0), limit = c.real("lambd", 0.5);
  if (!is_float(x.dtype()))  // integers are compared and moved as reals
    x = cast_to(x, DType::f64);
  Value above = ops::lt(constant_like(x, limit), x), below = less(x, -limit);
  Value y = chosen(below, x + bias, chosen(above, x - bias, constant_like(x, 0)));
  return {cast_to(y, c.in(0).dtype())};
}

// 1 at the first maximum of each row. Before opset 13 the axes from `axis` on are treated as one.
Values hardmax(NodeContext& c) {
  Value x = c.in(0);
  const Shape shape = x.shape();
  int axis = c.axis(c.integer("axis", c.opset() < 13 ? 1 : -1), x.rank());
  if (c.opset() < 13) {
    std::span<const Dim> dims = shape.dims;
    const auto at = static_cast<std::size_t>(axis);
    x = reshape_to(x, {product(dims.first(at)), product(dims.subspan(at))});
    axis = 1;
  }
  Value place = ops::argmax(x, {{"axis", std::int64_t{axis}}, {"dtype", DType::i64}});
  Value hot =
      ops::one_hot(Values{place, scalar(c.graph(), 1, x.dtype()), scalar(c.graph(), 0, x.dtype())},
                   {{"axis", std::int64_t{axis}}, {"count", Dims{x.shape()[axis]}}});
  return {reshape_to(hot, shape.dims)};
}

// Rows of norm 0 stay 0.
Values lp_normalization(NodeContext& c) {
  Value x = c.in(0);
  const Axes axes = {c.axis(c.integer("axis", -1), x.rank())};
  const std::int64_t p = c.integer("p", 2);
  if (p != 1 && p != 2) c.bad_attribute("p", p, "1 or 2");
  Value norm = p == 1 ? sum_over(ops::abs(x), axes, true) : ops::sqrt(sum_over(x * x, axes, true));
  norm = broadcast_to(norm, x.shape());
  return {chosen(ops::eq(norm, constant_like(norm, 0)), constant_like(x, 0), x / norm)};
}

Values mean_variance_normalization(NodeContext& c) {
  Value x = c.in(0);
  std::vector<std::int64_t> given = c.integers("axes").value_or(std::vector<std::int64_t>{0, 2, 3});
  const Axes axes = c.axes(given, x.rank());
  Value centred = minus(x, mean_over(x, axes, true));
  Value deviation = ops::sqrt(mean_over(centred * centred, axes, true));
  return {over(centred, deviation + 1e-9)};
}

Values eye_like(NodeContext& c) {
  const Value x = c.in(0);
  if (x.rank() != 2) c.fail(cat("the input is ", x.type(), ", expected a matrix"));
  DType t = x.dtype();
  if (c.has_attribute("dtype")) t = c.dtype("dtype");
  Value row = iota_value(c.graph(), DType::i64, x.shape(), 0);
  Value column = iota_value(c.graph(), DType::i64, x.shape(), 1);
  return {cast_to(ops::eq(row + integer_like(row, c.integer("k", 0)), column), t)};
}

Values bit_cast(NodeContext& c) {
  const DType to = c.dtype("to");
  Value x = c.in(0);
  // A bool is a byte with the value 0 or 1.
  if (x.dtype() == DType::b1 && byte_size(to) == 1) return {cast_to(x, to)};
  if (to == DType::b1 && byte_size(x.dtype()) == 1) return {cast_to(x, to)};
  if (bit_size(to) != bit_size(x.dtype()))
    c.fail(cat("the input is ", x.dtype(), " and attribute 'to' ", to,
               ", expected types of equal size"));
  return {to == x.dtype() ? x : ops::bitcast(x, {{"dtype", to}})};
}

template <const char* kind>
Values running(NodeContext& c) {
  Value x = c.in(0);
  if (c.in(1).shape().count() != Dim(1)) c.bad_input(1, "axis", "one element");
  const std::int64_t exclusive = c.flag("exclusive"), reverse = c.flag("reverse");
  return {over_axes(c, 1, x.rank(), [&](const Axes& axes) {
    return ops::cumulative(x, {{"axis", std::int64_t{axes[0]}},
                               {"kind", std::string(kind)},
                               {"exclusive", exclusive},
                               {"reverse", reverse}});
  })};
}

constexpr char sum_kind[] = "sum", prod_kind[] = "prod";

constexpr ImportEntry math_table[] = {
    {"Tan", in_wide<tangent>, 7},
    {"Asin", in_wide<arc_sine>, 7},
    {"Acos", in_wide<arc_cosine>, 7},
    {"Atan", in_wide<arc_tangent>, 7},
    {"Sinh", in_wide<hyperbolic_sine>, 9},
    {"Cosh", in_wide<hyperbolic_cosine>, 9},
    {"Asinh", in_wide<area_sine>, 9},
    {"Acosh", in_wide<area_cosine>, 9},
    {"Atanh", in_wide<area_tangent>, 9},
    {"Shrink", shrink, 9},
    {"Hardmax", hardmax},
    {"LpNormalization", lp_normalization},
    {"MeanVarianceNormalization", mean_variance_normalization, 9},
    {"EyeLike", eye_like, 9},
    {"BitCast", bit_cast, 26},
    {"CumSum", running<sum_kind>, 11},
    {"CumProd", running<prod_kind>, 26},
};

}  // namespace

std::span<const ImportEntry> math_imports() { return math_table; }

}  // namespace hone::onnx
