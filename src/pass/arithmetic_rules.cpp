#include <cmath>

#include "ops/common.h"
#include "pass/simplify.h"

namespace hone {

namespace {

// The number that every element of a hole equals, with the sign of a zero.
std::optional<double> number_in(const Match& m, std::string_view hole) {
  return uniform_number(m[hole]);
}

bool is_float_match(const Match& m) { return is_float(m.root.dtype()); }

// All elements are zeros of this sign.
bool all_zeros(Value v, bool negative) {
  if (uniform_number(v) != 0.0) return false;
  while (!v.is(ops::constant)) v = v.operand(0);
  const Array& a = v.attrs().get<Array>("value");
  for (std::int64_t i = 0; i < a.count(); ++i)
    if (std::signbit(a.real(i)) != negative) return false;
  return true;
}

// x + c and x - c leave every x unchanged, even -0.0: c is a zero of the right sign, or x is an
// integer.
bool keeps_negative_zero(const Match& m, bool negative) {
  return is_float_match(m) ? all_zeros(m["c"], negative) : number_in(m, "c") == 0.0;
}

// 1 / c is exact (a power of two that stays normal).
bool has_exact_inverse(double c, DType t) {
  int exponent = 0;
  if (std::abs(std::frexp(c, &exponent)) != 0.5) return false;
  int most = t == DType::f16 ? 14 : 120;
  return std::abs(exponent) <= most;
}

// c and 1 / c are normal numbers of f32, far from both ends of its range.
bool has_normal_inverse(double c) { return std::abs(c) <= 1e30 && std::abs(c) >= 1e-30; }

bool divides_exactly(const Match& m) {
  std::optional<double> c = number_in(m, "c");
  return c && is_float_match(m) && has_exact_inverse(*c, m.root.dtype());
}

// Half precision keeps the division, where an additional rounding matters.
bool divides_normally(const Match& m) {
  std::optional<double> c = number_in(m, "c");
  DType t = m.root.dtype();
  return c && (t == DType::f32 || t == DType::f64) && has_normal_inverse(*c);
}

Value times_inverse(const Match& m) { return m["x"] * (1 / *number_in(m, "c")); }

// Every number of `from` is representable in `to`.
bool holds_all_of(DType to, DType from) {
  if (to == from || from == DType::b1) return true;
  const DTypeInfo &a = info(to), &b = info(from);
  if (b.is_float) return a.is_float && a.bytes > b.bytes;
  if (a.is_float) {
    int digits = to == DType::f64 ? 53 : to == DType::f32 ? 24 : to == DType::f16 ? 11 : 8;
    return digits >= 8 * b.bytes - (b.is_signed ? 1 : 0);
  }
  if (to == DType::b1) return false;
  return b.is_signed == a.is_signed ? a.bytes >= b.bytes : a.is_signed && a.bytes > b.bytes;
}

DType inner_dtype(const Match& m) { return m["x"].dtype(); }

// The first of two casts loses nothing. Casts from floats saturate while casts between integers
// keep the low bits, so a float between two integers matters unless the last dtype holds all
// numbers of the first.
bool first_cast_is_exact(const Match& m) {
  const DType from = inner_dtype(m), through = m.root.operand(0).dtype(), to = m.root.dtype();
  const bool saturates = is_float(through) && is_integer(from) && is_integer(to);
  return holds_all_of(through, from) && (!saturates || holds_all_of(to, from));
}

bool is_same_dtype(const Match& m) { return inner_dtype(m) == m.root.dtype(); }

bool is_true(const Match& m) { return number_in(m, "c") == 1.0; }
bool is_false(const Match& m) { return number_in(m, "c") == 0.0; }

bool is_signed_match(const Match& m) { return is_signed(m.root.dtype()); }
bool is_lowest(const Match& m) { return is_float_match(m) && number_in(m, "c") == -INFINITY; }
bool is_highest(const Match& m) { return is_float_match(m) && number_in(m, "c") == INFINITY; }
bool is_integer_match(const Match& m) { return is_integer(m.root.dtype()); }

Pattern any(std::string name) { return Pattern::any(std::move(name)); }
Pattern number(double x) { return Pattern::number(x); }

std::vector<Rule> make_arithmetic_rules() {
  using enum RuleClass;
  const Pattern x = any("x"), y = any("y"), c = any("c"), n = Pattern::some_number("c");
  auto keeps_sum = [](const Match& m) { return keeps_negative_zero(m, true); };
  auto keeps_difference = [](const Match& m) { return keeps_negative_zero(m, false); };
  return {
      {"add-zero", exact, x + n, x, keeps_sum},
      {"sub-zero", exact, x - n, x, keeps_difference},
      {"mul-one", exact, x * number(1), x},
      {"div-one", exact, x / number(1), x},
      {"mul-minus-one", exact, x * number(-1), -x},
      {"mul-zero-integer", exact, x * number(0), number(0), is_integer_match},
      {"sub-self-integer", exact, x - x, number(0), is_integer_match},
      {"div-power-of-two", exact, x / n, times_inverse, divides_exactly},
      {"div-number", rounding, x / n, times_inverse, divides_normally},
      {"pow-one", exact, ops::pow(x, number(1)), x},
      {"pow-two", rounding, ops::pow(x, number(2)), x * x},
      {"pow-three", rounding, ops::pow(x, number(3)), x * x * x, is_integer_match},
      {"neg-neg", exact, ops::neg(ops::neg(x)), x},
      {"sub-neg", exact, x - ops::neg(y), x + y},
      {"add-neg", exact, x + ops::neg(y), x - y},
      {"not-not", exact, ops::bit_not(ops::bit_not(x)), x},
      {"not-eq", exact, ops::bit_not(ops::eq(x, y)), ops::ne(x, y)},
      {"not-ne", exact, ops::bit_not(ops::ne(x, y)), ops::eq(x, y)},
      {"abs-abs", exact, ops::abs(ops::abs(x)), ops::abs(x)},
      {"abs-neg", exact, ops::abs(ops::neg(x)), ops::abs(x), is_signed_match},
      {"max-self", exact, ops::maximum(x, x), x},
      {"min-self", exact, ops::minimum(x, x), x},
      {"max-lowest", exact, ops::maximum(x, n), x, is_lowest},
      {"min-highest", exact, ops::minimum(x, n), x, is_highest},
      {"and-self", exact, ops::bit_and(x, x), x},
      {"or-self", exact, ops::bit_or(x, x), x},
      {"relu-relu", exact, ops::relu(ops::relu(x)), ops::relu(x)},
      {"select-same", exact, ops::select(c, x, x), x},
      {"select-true", exact, ops::select(n, x, y), x, is_true},
      {"select-false", exact, ops::select(n, x, y), y, is_false},
      {"select-not", exact, ops::select(ops::bit_not(c), x, y), ops::select(c, y, x)},
      {"cast-same", exact, ops::cast(x), x, is_same_dtype},
      {"cast-cast", exact, ops::cast(ops::cast(x)),
       [](const Match& m) { return cast_to(m["x"], m.root.dtype()); }, first_cast_is_exact},
      {"add-zero-any", unsafe, x + number(0), x},
      {"mul-zero", unsafe, x * number(0), number(0)},
      {"sub-self", unsafe, x - x, number(0)},
      {"exp-log", unsafe, ops::exp(ops::log(x)), x},
      {"log-exp", unsafe, ops::log(ops::exp(x)), x},
  };
}

}  // namespace

std::span<const Rule> arithmetic_rules() {
  static const std::vector<Rule> rules = make_arithmetic_rules();
  return rules;
}

}  // namespace hone
