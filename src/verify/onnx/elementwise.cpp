// Operators on single elements, whose operands broadcast.
#include <cmath>
#include <cstdlib>
#include <string>
#include <unordered_map>

#include "type/text.h"
#include "verify/onnx/call.h"

namespace hone::onnx {

namespace {

Sizes broadcast_dims(const Sizes& a, const Sizes& b) {
  Sizes out(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto size = [&](const Sizes& s) {
      return i + s.size() < out.size() ? 1 : s[i + s.size() - out.size()];
    };
    const std::int64_t x = size(a), y = size(b);
    if (x != y && x != 1 && y != 1) throw NotJudged();
    out[i] = x == 1 ? y : x;
  }
  return out;
}

// The element of an operand that broadcasts to the index.
double element(const Numbers& n, const Sizes& index) {
  const Sizes strides = strides_of(n.dims);
  std::int64_t at = 0;
  for (std::size_t i = 0; i < n.dims.size(); ++i)
    if (n.dims[i] != 1) at += index[i + index.size() - n.dims.size()] * strides[i];
  return n.values[static_cast<std::size_t>(at)];
}

// Whether a large integer, which numbers.h limits, stands for another.
bool is_unknown_whole(DType t, double x) {
  return is_integer(t) && bit_size(t) == 64 && std::fabs(x) >= most_whole;
}

template <class F>
Numbers joined(const Numbers& a, const Numbers& b, DType t, F f) {
  Numbers out{t, broadcast_dims(a.dims, b.dims), {}};
  for_index(out.dims, [&](const Sizes& index) {
    const double x = element(a, index), y = element(b, index);
    if (is_unknown_whole(a.dtype, x) || is_unknown_whole(b.dtype, y))
      out.add_open();
    else
      out.values.push_back(f(x, y));
  });
  return out;
}

template <class F>
std::vector<Numbers> mapped(Call& c, F f) {
  Numbers out{c.in(0).dtype, c.in(0).dims, {}};
  for (double x : c.in(0).values) out.values.push_back(f(x));
  return {out};
}

using Unary = double (*)(double);
const std::unordered_map<std::string_view, Unary> plain_unary = {
    {"Abs", [](double x) { return std::fabs(x); }},
    {"Neg", [](double x) { return -x; }},
    {"Exp", [](double x) { return std::exp(x); }},
    {"Log", [](double x) { return std::log(x); }},
    {"Sqrt", [](double x) { return std::sqrt(x); }},
    {"Tanh", [](double x) { return std::tanh(x); }},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"Erf", [](double x) { return std::erf(x); }},
    {"Ceil", [](double x) { return std::ceil(x); }},
    {"Floor", [](double x) { return std::floor(x); }},
    {"Round", [](double x) { return std::nearbyint(x); }},
    {"Relu", [](double x) { return x > 0 || x != x ? x : 0; }},
    {"Reciprocal", [](double x) { return 1 / x; }},
    {"Sin", [](double x) { return std::sin(x); }},
    {"Cos", [](double x) { return std::cos(x); }},
    {"Tan", [](double x) { return std::tan(x); }},
    {"Asin", [](double x) { return std::asin(x); }},
    {"Acos", [](double x) { return std::acos(x); }},
    {"Atan", [](double x) { return std::atan(x); }},
    {"Sinh", [](double x) { return std::sinh(x); }},
    {"Cosh", [](double x) { return std::cosh(x); }},
    {"Asinh", [](double x) { return std::asinh(x); }},
    {"Acosh", [](double x) { return std::acosh(x); }},
    {"Atanh", [](double x) { return std::atanh(x); }},
    {"Sign", [](double x) { return static_cast<double>((x > 0) - (x < 0)); }},
    {"Softplus", [](double x) { return x > 30 ? x : std::log1p(std::exp(x)); }},
    {"Softsign", [](double x) { return x / (1 + std::fabs(x)); }},
    {"Not", [](double x) { return x == 0 ? 1.0 : 0.0; }},
    {"HardSwish", [](double x) { return x * std::fmax(0, std::fmin(1, x / 6 + 0.5)); }},
    {"Mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
};

std::vector<Numbers> unary(Call& c) { return mapped(c, plain_unary.at(c.op())); }

std::vector<Numbers> identity(Call& c) { return {c.in(0)}; }

std::vector<Numbers> with_numbers(Call& c) {
  const std::string_view op = c.op();
  if (op == "LeakyRelu") {
    const double alpha = c.real("alpha", 0.01);
    return mapped(c, [&](double x) { return x < 0 ? alpha * x : x; });
  }
  if (op == "Elu") {
    const double alpha = c.real("alpha", 1);
    return mapped(c, [&](double x) { return x < 0 ? alpha * std::expm1(x) : x; });
  }
  if (op == "Celu") {
    const double alpha = c.real("alpha", 1);
    return mapped(
        c, [&](double x) { return std::fmax(0, x) + std::fmin(0, alpha * std::expm1(x / alpha)); });
  }
  if (op == "Selu") {
    const double alpha = c.real("alpha", 1.67326319217681884765625),
                 gamma = c.real("gamma", 1.05070102214813232421875);
    return mapped(c, [&](double x) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); });
  }
  if (op == "HardSigmoid") {
    const double alpha = c.real("alpha", 0.2), beta = c.real("beta", 0.5);
    return mapped(c, [&](double x) { return std::fmax(0, std::fmin(1, alpha * x + beta)); });
  }
  if (op == "ThresholdedRelu") {
    const double alpha = c.real("alpha", 1);
    return mapped(c, [&](double x) { return x > alpha ? x : 0; });
  }
  if (op == "Shrink") {
    const double lambd = c.real("lambd", 0.5), bias = c.real("bias", 0);
    return mapped(c, [&](double x) { return x < -lambd ? x + bias : x > lambd ? x - bias : 0; });
  }
  if (op == "Swish") {
    const double alpha = c.real("alpha", 1);
    return mapped(c, [&](double x) { return x / (1 + std::exp(-alpha * x)); });
  }
  // Gelu
  const bool is_tanh = c.text("approximate", "none") == "tanh";
  return mapped(c, [&](double x) {
    return is_tanh ? x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)))
                   : x / 2 * (1 + std::erf(x / std::sqrt(2)));
  });
}

std::vector<Numbers> binary(Call& c) {
  const std::string_view op = c.op();
  if (c.opset() < 7) throw NotJudged();  // they broadcast in other ways
  const Numbers &a = c.in(0), &b = c.in(1);
  const DType t = a.dtype;
  if (op == "Add") return {joined(a, b, t, [](double x, double y) { return x + y; })};
  if (op == "Sub") return {joined(a, b, t, [](double x, double y) { return x - y; })};
  if (op == "Mul") return {joined(a, b, t, [](double x, double y) { return x * y; })};
  if (op == "Div") {
    if (is_float(t)) return {joined(a, b, t, [](double x, double y) { return x / y; })};
    return {joined(a, b, t, [](double x, double y) { return std::trunc(x / y); })};
  }
  if (op == "Pow") {
    if (!is_float(t)) throw NotJudged();
    return {joined(a, b, t, [](double x, double y) { return std::pow(x, y); })};
  }
  if (op == "PRelu") return {joined(a, b, t, [](double x, double y) { return x < 0 ? x * y : x; })};
  if (op == "Mod") {
    if (c.integer("fmod", 0) != 0)
      return {joined(a, b, t, [](double x, double y) { return std::fmod(x, y); })};
    return {joined(a, b, t, [](double x, double y) { return x - y * std::floor(x / y); })};
  }
  const auto compare = [&](auto f) {
    return std::vector{
        joined(a, b, DType::b1, [&](double x, double y) { return f(x, y) ? 1.0 : 0.0; })};
  };
  if (op == "Equal") return compare([](double x, double y) { return x == y; });
  if (op == "Less") return compare([](double x, double y) { return x < y; });
  if (op == "Greater") return compare([](double x, double y) { return x > y; });
  if (op == "LessOrEqual") return compare([](double x, double y) { return x <= y; });
  if (op == "GreaterOrEqual") return compare([](double x, double y) { return x >= y; });
  if (op == "And") return compare([](double x, double y) { return x != 0 && y != 0; });
  if (op == "Or") return compare([](double x, double y) { return x != 0 || y != 0; });
  return compare([](double x, double y) { return (x != 0) != (y != 0); });  // Xor
}

std::vector<Numbers> bitwise(Call& c) {
  const std::string_view op = c.op();
  const DType t = c.in(0).dtype;
  const auto whole = [](double x) { return static_cast<std::int64_t>(x); };
  if (op == "BitwiseNot") {
    const double most = is_signed(t) ? -1 : std::ldexp(1, bit_size(t)) - 1;
    return mapped(c, [&](double x) { return most - x; });
  }
  return {joined(c.in(0), c.in(1), t, [&](double x, double y) {
    const std::int64_t a = whole(x), b = whole(y);
    return static_cast<double>(op == "BitwiseAnd" ? a & b : op == "BitwiseOr" ? a | b : a ^ b);
  })};
}

std::vector<Numbers> bit_shift(Call& c) {
  const bool is_left = c.text("direction", "") == "LEFT";
  const int bits = bit_size(c.in(0).dtype);
  return {joined(c.in(0), c.in(1), c.in(0).dtype, [&](double x, double by) {
    if (by < 0 || by >= bits) return std::nan("");  // before version 28 the page does not say
    return is_left ? std::fmod(std::ldexp(x, static_cast<int>(by)), std::ldexp(1, bits))
                   : std::floor(std::ldexp(x, -static_cast<int>(by)));
  })};
}

std::vector<Numbers> of_many(Call& c) {
  const std::string_view op = c.op();
  if (c.opset() < 8) throw NotJudged();
  Numbers out = c.in(0);
  for (std::size_t i = 1; i < c.inputs(); ++i)
    out = joined(out, c.in(i), out.dtype, [&](double x, double y) {
      if (op == "Max") return x != x || x > y ? x : y;
      if (op == "Min") return x != x || x < y ? x : y;
      return x + y;
    });
  if (op == "Mean")
    for (double& x : out.values) x /= static_cast<double>(c.inputs());
  return {out};
}

std::vector<Numbers> where(Call& c) {
  const Numbers &condition = c.in(0), &a = c.in(1), &b = c.in(2);
  Numbers out{a.dtype, broadcast_dims(broadcast_dims(condition.dims, a.dims), b.dims), {}};
  for_index(out.dims, [&](const Sizes& index) {
    out.values.push_back(element(condition, index) != 0 ? element(a, index) : element(b, index));
  });
  return {out};
}

std::vector<Numbers> clip(Call& c) {
  const double low = c.has(1) ? c.in(1).values.at(0) : c.real("min", -INFINITY),
               high = c.has(2) ? c.in(2).values.at(0) : c.real("max", INFINITY);
  return mapped(c, [&](double x) { return x != x ? x : std::fmin(std::fmax(x, low), high); });
}

// Floats of fewer bits, as the page of Cast has them.
struct SmallFloat {
  DType dtype;
  int digits, least_exponent;  // digits behind the point
  double most;
  bool has_infinity, has_negative_zero;
};
constexpr SmallFloat small_floats[] = {{DType::f8e4m3fn, 3, -6, 448, false, true},
                                       {DType::f8e4m3fnuz, 3, -7, 240, false, false},
                                       {DType::f8e5m2, 2, -14, 57344, true, true},
                                       {DType::f8e5m2fnuz, 2, -15, 57344, false, false}};
constexpr SmallFloat halves[] = {{DType::f16, 10, -14, 65504, true, true},
                                 {DType::bf16, 7, -126, 0x1.fep127, true, true}};

// To the nearest, ties to even. Beyond the largest number: that, or infinity or NaN.
double rounded_to(const SmallFloat& f, bool saturates, double x) {
  if (x != x) return x;
  int exponent = 0;
  std::frexp(x, &exponent);
  const double step = std::ldexp(1, std::max(exponent - 1, f.least_exponent) - f.digits);
  const double y = std::isinf(x) ? x : std::nearbyint(x / step) * step;
  if (std::fabs(y) > f.most) {
    if (saturates) return std::copysign(f.most, x);
    return f.has_infinity ? std::copysign(INFINITY, x) : NAN;
  }
  return y == 0 && !f.has_negative_zero ? 0 : y;
}

// The low bits of an integer.
double wrapped(double x, DType to) {
  const double span = std::ldexp(1, bit_size(to)), least = is_signed(to) ? -span / 2 : 0;
  if (x >= least && x < least + span) return x;
  const double low = x - span * std::floor(x / span);
  return is_signed(to) && low >= span / 2 ? low - span : low;
}

// Rounded to a float dtype.
double as_stored(DType t, double x) {
  if (t == DType::f32) return static_cast<double>(static_cast<float>(x));
  if (t == DType::f16) return rounded_to(halves[0], false, x);
  return t == DType::bf16 ? rounded_to(halves[1], false, x) : x;
}

// The number that a string spells. Other strings, and integers that a double does not hold, are not
// judged.
double number_in(double text) {
  const std::string spelled(hone::text_of(static_cast<std::uint64_t>(text)));
  char* end = nullptr;
  const double x = std::strtod(spelled.c_str(), &end);
  if (spelled.empty() || *end != 0 || std::fabs(x) >= 0x1p53) throw NotJudged();
  return x;
}

std::vector<Numbers> cast_as(Call& c, DType to) {
  if (c.has_attribute("round_mode")) throw NotJudged();
  const bool saturates = c.integer("saturate", 1) != 0, is_whole = is_integer(c.in(0).dtype);
  const auto small = std::ranges::find(small_floats, to, &SmallFloat::dtype);
  const bool is_small_float = small != std::end(small_floats);
  if (to == DType::text || (is_small(to) && is_float(to) && !is_small_float)) throw NotJudged();
  const auto number = [&](double x) {
    if (is_small_float) return rounded_to(*small, saturates, x);
    if (to == DType::b1) return x != 0 ? 1.0 : 0.0;
    if (to == DType::f32) return static_cast<double>(static_cast<float>(x));
    if (to == DType::f16) return rounded_to(halves[0], false, x);
    if (to == DType::bf16) return rounded_to(halves[1], false, x);
    if (is_float(to)) return x;
    return is_whole ? wrapped(x, to) : std::trunc(x);
  };
  const bool is_text = c.in(0).dtype == DType::text;
  std::vector<Numbers> out =
      mapped(c, [&](double x) { return number(is_text ? number_in(x) : x); });
  out[0].dtype = to;
  // What is cast may have been rounded to its dtype or not, which decides beside an integer.
  const DType from = c.in(0).dtype;
  if (is_float(from) && !is_float(to))
    for (std::size_t i = 0; i < out[0].values.size(); ++i)
      if (number(as_stored(from, c.in(0).values[i])) != out[0].values[i]) out[0].leave_open(i);
  for (std::size_t i = 0; i < out[0].values.size(); ++i)
    if (is_unknown_whole(from, c.in(0).values[i])) out[0].leave_open(i);
  return out;
}

std::vector<Numbers> cast(Call& c) {
  const std::optional<DType> to = dtype_of(c.integer("to", 0));
  if (!to) throw NotJudged();
  return cast_as(c, *to);
}

// To the type of the second operand.
std::vector<Numbers> cast_like(Call& c) { return cast_as(c, c.in(1).dtype); }

// The element of a scale or zero point for an element of x: one for all, one along an axis, or one
// for each block of an axis.
double along_axis(Call& c, std::size_t input, std::size_t axis, std::int64_t block,
                  const Sizes& index) {
  const Numbers& n = c.in(input);
  if (block == 0 && n.dims.size() > 1) throw NotJudged();
  if (block == 0) return n.values.at(n.count() == 1 ? 0 : static_cast<std::size_t>(index.at(axis)));
  Sizes at = index;
  at.at(axis) /= block;
  return n.values.at(static_cast<std::size_t>(place(at, strides_of(n.dims))));
}

struct Quantized {
  std::size_t axis = 0;
  std::int64_t block = 0;
};

Quantized quantized(Call& c) {
  const std::int64_t given = c.integer("axis", 1);
  Quantized q{0, c.integer("block_size", 0)};
  if (q.block > 0 && c.in(1).dims.size() != c.in(0).dims.size()) throw NotJudged();
  if (q.block > 0 || c.in(1).count() != 1) q.axis = c.axis(given, c.rank());
  return q;
}

// The quotient, rounded to the nearest whole number, ties to even, and shifted. Its own rounding
// decides next to the middle of two numbers.
double rounded_quotient(double q, double zero) {
  constexpr double told_apart = 1e-5;
  const double off = std::fabs(q - std::floor(q) - 0.5);
  return off > 0 && off < told_apart ? NAN : std::nearbyint(q) + zero;
}

std::vector<Numbers> quantize_linear(Call& c) {
  const Numbers& x = c.in(0);
  const Quantized along = quantized(c);
  const bool saturates = c.integer("saturate", 1) != 0;
  Numbers out{DType::u8, x.dims, {}};
  const std::int64_t named = c.integer("output_dtype", 0);
  if (named != 0) {
    const std::optional<DType> t = dtype_of(named);
    if (!t) throw NotJudged();
    out.dtype = *t;
  }
  if (c.has(2)) out.dtype = c.in(2).dtype;
  const auto small = std::ranges::find(small_floats, out.dtype, &SmallFloat::dtype);
  const bool is_real = is_float(out.dtype);
  if ((is_real && small == std::end(small_floats)) || c.integer("precision", 0) != 0)
    throw NotJudged();
  const double high = std::ldexp(1, bit_size(out.dtype) - is_signed(out.dtype)) - 1,
               low = is_signed(out.dtype) ? -high - 1 : 0;
  std::size_t i = 0;
  for_index(x.dims, [&](const Sizes& index) {
    const double scale = along_axis(c, 1, along.axis, along.block, index),
                 zero = c.has(2) ? along_axis(c, 2, along.axis, along.block, index) : 0,
                 q = x.values[i++] / scale;
    if (is_real) return out.values.push_back(rounded_to(*small, saturates, q + zero));
    const double y = rounded_quotient(q, zero);
    out.values.push_back(y != y ? y : std::clamp(y, low, high));
  });
  return {out};
}

std::vector<Numbers> dequantize_linear(Call& c) {
  const Numbers& x = c.in(0);
  const Quantized along = quantized(c);
  Numbers out{c.in(1).dtype, x.dims, {}};
  if (const std::int64_t named = c.integer("output_dtype", 0); named != 0) {
    const std::optional<DType> t = dtype_of(named);
    if (!t) throw NotJudged();
    out.dtype = *t;
  }
  std::size_t i = 0;
  for_index(x.dims, [&](const Sizes& index) {
    const double zero = c.has(2) ? along_axis(c, 2, along.axis, along.block, index) : 0;
    out.values.push_back((x.values[i++] - zero) * along_axis(c, 1, along.axis, along.block, index));
  });
  return {out};
}

std::vector<Numbers> dropout(Call& c) {
  if (c.outputs() > 1 || c.has(2)) throw NotJudged();
  static_cast<void>(c.real("ratio", 0.5));
  static_cast<void>(c.integer("seed", 0));
  return {c.in(0)};
}

std::vector<Numbers> is_special(Call& c) {
  const bool nan = c.op() == "IsNaN", low = c.integer("detect_negative", 1) != 0,
             high = c.integer("detect_positive", 1) != 0;
  std::vector<Numbers> out = mapped(c, [&](double x) {
    return nan ? x != x : std::isinf(x) && (x > 0 ? high : low) ? 1.0 : 0.0;
  });
  out[0].dtype = DType::b1;
  return out;
}

}  // namespace

std::span<const MeaningRow> elementwise_meanings() {
  static const std::vector<MeaningRow> rows = [] {
    std::vector<MeaningRow> out;
    for (const auto& [name, f] : plain_unary) out.push_back({name, unary, Kind::rounds});
    for (const char* name : {"LeakyRelu", "Elu", "Celu", "Selu", "HardSigmoid", "ThresholdedRelu",
                             "Shrink", "Gelu", "Swish"})
      out.push_back({name, with_numbers, Kind::rounds});
    for (const char* name : {"Add", "Sub", "Mul", "Div", "Pow", "PRelu", "Mod", "Equal", "Less",
                             "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Xor"})
      out.push_back({name, binary, Kind::rounds});
    for (const char* name : {"Max", "Min", "Sum", "Mean"})
      out.push_back({name, of_many, Kind::rounds});
    for (const char* name : {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"})
      out.push_back({name, bitwise, Kind::rounds});
    const MeaningRow others[] = {{"BitShift", bit_shift, Kind::rounds},
                                 {"Clip", clip, Kind::rounds},
                                 {"Cast", cast, Kind::rounds},
                                 {"CastLike", cast_like, Kind::rounds},
                                 {"QuantizeLinear", quantize_linear, Kind::rounds},
                                 {"DequantizeLinear", dequantize_linear, Kind::rounds},
                                 {"Where", where, Kind::copies},
                                 {"Identity", identity, Kind::copies},
                                 {"Dropout", dropout, Kind::copies},
                                 {"IsNaN", is_special, Kind::copies},
                                 {"IsInf", is_special, Kind::copies}};
    out.insert(out.end(), std::begin(others), std::end(others));
    return out;
  }();
  return rows;
}

}  // namespace hone::onnx
