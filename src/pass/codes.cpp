#include "pass/codes.h"

#include <cmath>
#include <limits>

#include "ops/common.h"

namespace hone {

namespace {

Value both(Value a, Value b) { return ops::bit_and(a, b); }
Value either(Value a, Value b) { return ops::bit_or(a, b); }
Value chosen(Value condition, Value a, Value b) { return ops::select(Values{condition, a, b}); }
Value left(Value x, int n) { return ops::shift_left(x, integer_like(x, n)); }
Value right(Value x, int n) { return ops::shift_right(x, integer_like(x, n)); }
Value masked(Value x, std::int64_t mask) { return both(x, integer_like(x, mask)); }
Value equals(Value x, std::int64_t n) { return ops::eq(x, integer_like(x, n)); }
Value exceeds(Value x, std::int64_t n) { return ops::lt(integer_like(x, n), x); }
Value is_nan(Value x) { return ops::ne(x, x); }
Value clamped(Value x, std::int64_t low, std::int64_t high) {
  return ops::minimum(ops::maximum(x, integer_like(x, low)), integer_like(x, high));
}
Value as(Value x, DType t) { return ops::bitcast(x, {{"dtype", t}}); }

// The IEEE format used to decode or encode a small float, and the integer of the same width.
struct Format {
  DType real, integer;
  int mantissa, bias;
};
constexpr Format single = {DType::f32, DType::i32, 23, 127};
constexpr Format twofold = {DType::f64, DType::i64, 52, 1023};

const Format& format_of(DType t) { return t == DType::f32 ? single : twofold; }

// ==== numbers from codes

// Formats with only an exponent; the least number is a subnormal f32.
Value exponent_decoded(Value code, const SmallFloat& f) {
  Value bits = chosen(equals(code, 0), integer_like(code, 0x400000), left(code, 23));
  return as(chosen(equals(code, f.nan), integer_like(code, 0x7fc00000), bits), DType::f32);
}

Value float_decoded(Value codes, DType t) {
  const SmallFloat& f = small_float(t);
  Value code = cast_to(codes, DType::i32);
  if (!f.has_sign) return exponent_decoded(code, f);
  const int sign = 1 << (bit_size(t) - 1);
  Value low = masked(code, sign - 1);
  // Reading the fields as those of an f32 gives a number too small by exactly the difference of the
  // biases.
  Value number = as(left(low, 23 - f.mantissa), DType::f32);
  number = number * std::ldexp(1.0, 126 + f.least_exponent);
  Value signs = left(masked(code, sign), 32 - bit_size(t));
  number = as(either(as(number, DType::i32), signs), DType::f32);
  if (f.infinity != 0) {
    Value infinity = constant_like(number, std::numeric_limits<double>::infinity());
    number = chosen(equals(low, f.infinity), chosen(equals(signs, 0), infinity, -infinity), number);
  }
  if (f.nan == 0) return number;
  Value nan = constant_like(number, std::numeric_limits<double>::quiet_NaN());
  const bool is_one_code = !f.has_negative_zero;
  return chosen(is_one_code ? equals(code, f.nan) : exceeds(low, std::max(f.largest, f.infinity)),
                nan, number);
}

// The values in dtype t, which holds every number of the small one.
Value decoded(Value codes, DType t) { return is_float(t) ? float_decoded(codes, t) : codes; }

// ==== codes from numbers

Value exponent_encoded(Value bits, const SmallFloat& f, const Format& in) {
  Value field = right(bits, in.mantissa);
  Value half = masked(right(bits, in.mantissa - 1), 1);
  // A subnormal f32 of at least 2^-127 has an explicit leading one.
  Value up = chosen(equals(field, 0), both(half, masked(right(bits, in.mantissa - 2), 1)), half);
  Value code = field + up - integer_like(bits, in.bias + f.least_exponent);
  return clamped(code, 0, f.nan);
}

// Number of steps of the small format from 0 to |x|, rounded; `bits` are those of |x|. 0 for
// infinities.
Value steps_of(Value x, Value bits, const SmallFloat& f, const Format& in) {
  Value exponent = right(bits, in.mantissa) - integer_like(bits, in.bias);
  exponent = ops::maximum(exponent, integer_like(bits, f.least_exponent));
  Value shift = integer_like(bits, f.mantissa + in.bias) - exponent;
  Value unit = as(left(shift, in.mantissa), in.real);  // 2^(mantissa - exponent)
  Value steps = cast_to(ops::round(x * unit), in.integer);
  return left(exponent - integer_like(bits, f.least_exponent), f.mantissa) + steps;
}

Value float_encoded(Value x, DType t) {
  const SmallFloat& f = small_float(t);
  const Format& in = format_of(x.dtype());
  Value magnitude = ops::abs(x);
  Value bits = as(magnitude, in.integer);
  if (!f.has_sign) return exponent_encoded(bits, f, in);
  Value infinity = constant_like(x, std::numeric_limits<double>::infinity());
  Value is_finite = ops::lt(magnitude, infinity);
  Value safe = chosen(is_finite, magnitude, constant_like(x, 0));
  Value code = steps_of(safe, as(safe, in.integer), f, in);
  const int beyond = f.infinity != 0 ? f.infinity : f.nan != 0 ? f.nan : f.largest;
  Value outside = either(exceeds(code, f.largest), ops::bit_not(is_finite));
  code = chosen(outside, integer_like(code, beyond), code);
  Value is_negative = ops::lt(as(x, in.integer), integer_like(bits, 0));
  if (!f.has_negative_zero)  // that code is the only NaN
    is_negative = both(is_negative, both(ops::ne(code, integer_like(code, 0)),
                                         ops::ne(code, integer_like(code, f.nan))));
  code = chosen(is_negative, either(code, integer_like(code, 1 << (bit_size(t) - 1))), code);
  return chosen(is_nan(x), integer_like(code, f.nan != 0 ? f.nan : 1 << (bit_size(t) - 1)), code);
}

Value integer_encoded(Value x, DType t) {
  const int bits = bit_size(t);
  if (is_float(x.dtype())) {
    const std::int64_t high = (std::int64_t{1} << (bits - is_signed(t))) - 1;
    x = clamped(cast_to(x, DType::i32), is_signed(t) ? -high - 1 : 0, high);
  }
  Value byte = cast_to(x, code_dtype(t));
  return right(left(byte, 8 - bits), 8 - bits);
}

Value encoded(Value x, DType t) {
  if (!is_float(t)) return integer_encoded(x, t);
  const bool fits_f32 = x.dtype() == DType::b1 || byte_size(x.dtype()) <= 2;
  const bool is_f32 = x.dtype() == DType::f32 || fits_f32;
  return cast_to(float_encoded(cast_to(x, is_f32 ? DType::f32 : DType::f64), t), DType::u8);
}

Value cast_codes(Value x, DType from, DType to) {
  if (from == to) return x;
  Value number = is_small(from) ? decoded(x, from) : x;
  return is_small(to) ? encoded(number, to) : cast_to(number, to);
}

// Clears the bits above those of the dtype, or sign-extends it.
Value codes_of_bytes(Value x, DType t) {
  Value byte = x.dtype() == code_dtype(t) ? x : as(x, code_dtype(t));
  const int unused = 8 - bit_size(t);
  return unused == 0 ? byte : right(left(byte, unused), unused);
}

Value bitcast_codes(Value x, DType to) {
  if (is_small(to)) return codes_of_bytes(x, to);
  return x.dtype() == to ? x : as(x, to);
}

// ==== functions

bool is_small_tensor(const Type& t) { return t.is_tensor() && is_small(t.dtype); }

Type code_type(Type t) {
  if (is_small_tensor(t)) t.dtype = code_dtype(t.dtype);
  return t;
}

Array code_array(const Array& a) { return Array(code_dtype(a.dtype()), a.dims(), a.storage()); }

bool is_small_attr(const Attr& a) {
  const DType* t = std::get_if<DType>(&a);
  const Array* array = std::get_if<Array>(&a);
  return (t && is_small(*t)) || (array && is_small(array->dtype()));
}

bool has_small(const Function& f) {
  const Graph& graph = f.graph();
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      if (is_small_tensor(graph.type(n, i))) return true;
    if (graph.op(n).kind != OpKind::control) continue;
    for (const Attrs::Entry& e : graph.attrs(n).entries())
      if (auto* body = std::get_if<FunctionRef>(&e.second); body && has_small(**body)) return true;
  }
  return false;
}

Function body_as_codes(const Function&);

Attrs attrs_as_codes(const Attrs& attrs) {
  Attrs out = attrs;
  for (const Attrs::Entry& e : attrs.entries()) {
    if (auto* body = std::get_if<FunctionRef>(&e.second); body && has_small(**body))
      out.set(e.first, std::make_shared<const Function>(body_as_codes(**body)));
    if (!is_small_attr(e.second)) continue;
    if (auto* a = std::get_if<Array>(&e.second)) out.set(e.first, code_array(*a));
    if (auto* t = std::get_if<DType>(&e.second)) out.set(e.first, code_dtype(*t));
  }
  return out;
}

// A contraction may sum small floats in a wider dtype; the codes convert to it exactly.
bool is_contraction(const Op& op) {
  return &op == &ops::dot || &op == &ops::matmul || &op == &ops::conv;
}

Values node_as_codes(const Graph& from, NodeId n, const Copier& copier, Graph& to) {
  const Op& op = from.op(n);
  Values operands;
  for (const Value& v : from.operands(n)) operands.push_back(copier(v));
  if (&op == &ops::cast || &op == &ops::bitcast) {
    const DType given = from.operands(n)[0].dtype(), wanted = from.attrs(n).get<DType>("dtype");
    if (&op == &ops::cast) return {cast_codes(operands[0], given, wanted)};
    return {bitcast_codes(operands[0], wanted)};
  }
  if (is_contraction(op))
    for (std::size_t i = 0; i < operands.size(); ++i)
      operands[i] = cast_codes(operands[i], from.operands(n)[i].dtype(), from.type(n, 0).dtype);
  Value made = to.intern(op, operands, attrs_as_codes(from.attrs(n)));
  Values results;
  for (std::size_t i = 0; i < made.result_count(); ++i) results.push_back(made.result(i));
  return results;
}

bool touches_small(const Graph& graph, NodeId n) {
  for (const Value& v : graph.operands(n))
    if (is_small_tensor(v.type())) return true;
  for (std::size_t i = 0; i < graph.result_count(n); ++i)
    if (is_small_tensor(graph.type(n, i))) return true;
  return graph.op(n).kind == OpKind::control;
}

// `params` of `to` replace those of f, as codes.
Values results_as_codes(const Function& f, std::span<const Value> params, Function& to) {
  Copier copier(f, params, to);
  for (NodeId n : live_nodes(f)) {
    if (copier.has(n)) continue;
    if (!touches_small(f.graph(), n)) {
      copier.copy(n);
      continue;
    }
    OriginScope scope(to.graph(), copier.origins_in_target(n));
    copier.set(n, node_as_codes(f.graph(), n, copier, to.graph()));
  }
  Values out;
  for (const Function::Result& r : f.results()) out.push_back(copier(r.value));
  return out;
}

Function body_as_codes(const Function& f) {
  Function out;
  Values params;
  for (const Function::Param& p : f.params())
    params.push_back(out.add_param(code_type(p.value.type()), p));
  for (const DimCheck& c : f.graph().checks()) out.graph().add_check(c);
  Values results = results_as_codes(f, params, out);
  for (std::size_t i = 0; i < results.size(); ++i) out.add_result(results[i], f.results()[i]);
  return out;
}

}  // namespace

Function small_dtypes_as_codes(const Function& f) {
  if (!has_small(f)) return f;
  Function out = clone_params(f);
  Values params;
  for (const Function::Param& p : out.params())
    params.push_back(is_small_tensor(p.value.type()) ? codes_of_bytes(p.value, p.value.dtype())
                                                     : p.value);
  Values results = results_as_codes(f, params, out);
  for (std::size_t i = 0; i < results.size(); ++i) {
    Value v = f.result(i);
    if (v.is(ops::param))
      v = out.param(static_cast<std::size_t>(v.attrs().integer("index")));
    else
      v = is_small_tensor(v.type()) ? as(results[i], v.dtype()) : results[i];
    out.add_result(v, f.results()[i]);
  }
  return out;
}

}  // namespace hone
