#include "import/onnx/operators/cast.h"

#include <cmath>

#include "import/common/build.h"
#include "ops/host.h"

namespace hone::onnx {

namespace {

bool is_small_float(DType t) { return is_small(t) && is_float(t); }

// Converts x to a float dtype of at least 16 bits, exactly wherever a small float is close.
Value as_float(Value x) {
  if (is_float(x.dtype()) && !is_small(x.dtype())) return x;
  return cast_to(x, byte_size(x.dtype()) <= 2 ? DType::f32 : DType::f64);
}

// Clamps to the largest number, infinities too.
Value saturated(Value x, DType to) {
  const double largest = small_to_f64(to, static_cast<std::uint8_t>(small_float(to).largest));
  x = as_float(x);
  return ops::minimum(ops::maximum(x, constant_like(x, -largest)), constant_like(x, largest));
}

// Casts to a power of two: `cast` rounds to nearest, ties up.
Value cast_to_exponent(NodeContext& c, Value x, bool saturate) {
  const std::string_view mode = c.text("round_mode", "up");
  if (mode != "up" && mode != "down" && mode != "nearest")
    c.bad_attribute("round_mode", mode, "up, down or nearest");
  x = ops::abs(cast_to(as_float(x), sum_dtype(as_float(x).dtype())));
  if (saturate) {
    Value is_infinite = ops::eq(x, constant_like(x, HUGE_VAL));
    x = where(is_infinite, x, ops::minimum(x, constant_like(x, 0x1p127)));
  }
  Value nearest = cast_to(x, DType::f8e8m0);
  if (mode == "nearest") return nearest;
  Value code = ops::bitcast(nearest, {{"dtype", DType::u8}});
  Value number = cast_to(nearest, x.dtype());
  if (mode == "up") {
    code = code + cast_to(ops::lt(number, x), DType::u8);
  } else {
    Value steps = cast_to(ops::lt(x, number), DType::u8);
    code = code - ops::minimum(steps, code);
  }
  return ops::bitcast(code, {{"dtype", DType::f8e8m0}});
}

}  // namespace

namespace {

Value text_of_numbers(NodeContext& c, Value x) {
  c.ignore("saturate");
  c.ignore("round_mode");
  if (x.dtype() == DType::u64)
    c.unsupported("casting u64 to strings is not supported; cast to i64 first");
  if (!is_float(x.dtype())) return ops::text_of_integer(cast_to(x, DType::i64));
  // The digits that ONNX Runtime writes for f32.
  const std::int64_t digits = x.dtype() == DType::f64 ? 17 : 8;
  return ops::text_of_real(cast_to(x, DType::f64), {{"count", digits}});
}

Value numbers_of_text(NodeContext& c, Value x, DType to) {
  if (to == DType::b1) c.unsupported("casting strings to bool is not supported; cast to i64 first");
  return cast_value(c, is_float(to) ? ops::real_of_text(x) : ops::integer_of_text(x), to);
}

}  // namespace

Value cast_value(NodeContext& c, Value x, DType to) {
  if (x.dtype() != to && to == DType::text) return text_of_numbers(c, x);
  if (x.dtype() != to && x.dtype() == DType::text) return numbers_of_text(c, x, to);
  const bool saturate = c.flag("saturate", true);
  if (to == DType::f8e8m0 && x.dtype() != to) return cast_to_exponent(c, x, saturate);
  c.ignore("round_mode");
  if (x.dtype() == to) return x;
  if (is_small_float(to)) return cast_to(saturate ? saturated(x, to) : x, to);
  if (is_small(to) && is_float(x.dtype())) x = cast_to(x, DType::i32);
  return cast_to(x, to);
}

}  // namespace hone::onnx
