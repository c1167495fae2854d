// Arithmetic, comparisons, conversions and lanes.
#include <llvm-c/Core.h>

#include <cmath>
#include <optional>

#include "base/error.h"
#include "codegen/llvm/builder.h"

namespace hone::llvm {

namespace {

LLVMBuilderRef builder(const Value& v) { return v.module->builder(); }
int bits(DType t) { return 8 * byte_size(t); }
Value same(const Value& like, LLVMValueRef ref) { return like.module->wrap(ref, like.type); }
Value flagged(const Value& like, LLVMValueRef ref) {
  return same(like, like.module->with_flags(ref));
}
Value mask_like(const Value& v, LLVMValueRef ref) {
  return v.module->wrap(ref, {DType::b1, v.lanes()});
}
bool counts_below_zero(const Value& v) { return is_integer(v.dtype()) && is_signed(v.dtype()); }

// Brings two operands to one type.
void meet(Value& a, Value& b) {
  if (a.lanes() == 1) a = broadcast(a, b.lanes());
  if (b.lanes() == 1) b = broadcast(b, a.lanes());
  HONE_ASSERT(a.type == b.type, "operands differ: ", a.dtype(), " x ", a.lanes(), " and ",
              b.dtype(), " x ", b.lanes());
}

Value intrinsic(std::string_view name, std::initializer_list<Value> in) {
  std::vector<LLVMValueRef> refs;
  for (const Value& v : in) refs.push_back(v.ref);
  const Value& first = *in.begin();
  LLVMTypeRef type = first.module->llvm_type(first.type);
  return same(first, first.module->intrinsic(name, std::span(&type, 1), refs));
}

using Build = LLVMValueRef (*)(LLVMBuilderRef, LLVMValueRef, LLVMValueRef, const char*);

Value arithmetic(Value a, Value b, Build integers, Build floats) {
  meet(a, b);
  HONE_ASSERT(a.dtype() != DType::b1, "arithmetic on masks; cast them first");
  Build build = is_float(a.dtype()) ? floats : integers;
  return flagged(a, build(builder(a), a.ref, b.ref, ""));
}

Value bitwise(Value a, Value b, Build build) {
  meet(a, b);
  HONE_ASSERT(!is_float(a.dtype()), "bit operations on ", a.dtype());
  return same(a, build(builder(a), a.ref, b.ref, ""));
}

// A divisor that does not trap, and the lanes where it replaces another.
struct Divisor {
  Value safe, is_zero, is_minus_one;
};

Divisor guard(const Value& d) {
  Value one = integer_like(d, 1);
  Value is_zero = equal(d, integer_like(d, 0));
  Value is_minus_one =
      counts_below_zero(d) ? equal(d, integer_like(d, -1)) : d.module->boolean(false, d.lanes());
  return {select(is_zero | is_minus_one, one, d), is_zero, is_minus_one};
}

Value divide_integers(Value n, Value d) {
  Divisor g = guard(d);
  Build build = is_signed(n.dtype()) ? LLVMBuildSDiv : LLVMBuildUDiv;
  Value q = same(n, build(builder(n), n.ref, g.safe.ref, ""));
  if (counts_below_zero(n)) q = select(g.is_minus_one, -n, q);
  return select(g.is_zero, integer_like(n, -1), q);
}

Value rest_of_integers(Value n, Value d) {
  Divisor g = guard(d);
  Build build = is_signed(n.dtype()) ? LLVMBuildSRem : LLVMBuildURem;
  Value r = same(n, build(builder(n), n.ref, g.safe.ref, ""));
  return select(g.is_zero, n, r);
}

}  // namespace

// ---- arithmetic

Value operator+(Value a, Value b) { return arithmetic(a, b, LLVMBuildAdd, LLVMBuildFAdd); }
Value operator-(Value a, Value b) { return arithmetic(a, b, LLVMBuildSub, LLVMBuildFSub); }
Value operator*(Value a, Value b) { return arithmetic(a, b, LLVMBuildMul, LLVMBuildFMul); }

Value operator-(Value v) {
  if (is_float(v.dtype())) return flagged(v, LLVMBuildFNeg(builder(v), v.ref, ""));
  return integer_like(v, 0) - v;
}

Value operator/(Value a, Value b) {
  meet(a, b);
  HONE_ASSERT(a.dtype() != DType::b1, "division of masks");
  return is_float(a.dtype()) ? flagged(a, LLVMBuildFDiv(builder(a), a.ref, b.ref, ""))
                             : divide_integers(a, b);
}

Value operator%(Value a, Value b) {
  meet(a, b);
  HONE_ASSERT(is_integer(a.dtype()), "remainder of ", a.dtype());
  return rest_of_integers(a, b);
}

Value divide_index(Value n, Value d) {
  meet(n, d);
  return same(n, LLVMBuildUDiv(builder(n), n.ref, d.ref, ""));
}
Value modulo_index(Value n, Value d) {
  meet(n, d);
  return same(n, LLVMBuildURem(builder(n), n.ref, d.ref, ""));
}

Value operator&(Value a, Value b) { return bitwise(a, b, LLVMBuildAnd); }
Value operator|(Value a, Value b) { return bitwise(a, b, LLVMBuildOr); }
Value operator^(Value a, Value b) { return bitwise(a, b, LLVMBuildXor); }
Value operator~(Value v) { return v ^ integer_like(v, -1); }

Value operator<<(Value v, Value amount) {
  meet(v, amount);
  Value zero = integer_like(v, 0), width = integer_like(v, bits(v.dtype()));
  Value fits = mask_like(v, LLVMBuildICmp(builder(v), LLVMIntULT, amount.ref, width.ref, ""));
  return select(fits, bitwise(v, amount, LLVMBuildShl), zero);
}

Value operator>>(Value v, Value amount) {
  meet(v, amount);
  Value zero = integer_like(v, 0), width = integer_like(v, bits(v.dtype()));
  Value fits = mask_like(v, LLVMBuildICmp(builder(v), LLVMIntULT, amount.ref, width.ref, ""));
  if (!is_signed(v.dtype())) return select(fits, bitwise(v, amount, LLVMBuildLShr), zero);
  return bitwise(v, select(fits, amount, width - 1), LLVMBuildAShr);
}

namespace {

struct Order {
  LLVMRealPredicate real;
  LLVMIntPredicate with_sign, without_sign;
};

Value compare(Value a, Value b, const Order& order) {
  meet(a, b);
  if (is_float(a.dtype()))
    return mask_like(a, LLVMBuildFCmp(builder(a), order.real, a.ref, b.ref, ""));
  LLVMIntPredicate p = counts_below_zero(a) ? order.with_sign : order.without_sign;
  return mask_like(a, LLVMBuildICmp(builder(a), p, a.ref, b.ref, ""));
}

}  // namespace

Value equal(Value a, Value b) { return compare(a, b, {LLVMRealOEQ, LLVMIntEQ, LLVMIntEQ}); }
Value not_equal(Value a, Value b) { return compare(a, b, {LLVMRealUNE, LLVMIntNE, LLVMIntNE}); }
Value less(Value a, Value b) { return compare(a, b, {LLVMRealOLT, LLVMIntSLT, LLVMIntULT}); }
Value less_equal(Value a, Value b) { return compare(a, b, {LLVMRealOLE, LLVMIntSLE, LLVMIntULE}); }
Value greater(Value a, Value b) { return less(b, a); }
Value greater_equal(Value a, Value b) { return less_equal(b, a); }

Value unordered(Value a, Value b) {
  meet(a, b);
  return mask_like(a, LLVMBuildFCmp(builder(a), LLVMRealUNO, a.ref, b.ref, ""));
}
Value is_nan(Value v) { return unordered(v, v); }

Value select(Value mask, Value if_true, Value if_false) {
  meet(if_true, if_false);
  int lanes = std::max(mask.lanes(), if_true.lanes());
  mask = broadcast(mask, lanes);
  if_true = broadcast(if_true, lanes);
  if_false = broadcast(if_false, lanes);
  HONE_ASSERT(mask.dtype() == DType::b1, "select by ", mask.dtype());
  return flagged(if_true, LLVMBuildSelect(builder(mask), mask.ref, if_true.ref, if_false.ref, ""));
}

Pointer select(Value mask, Pointer if_true, Pointer if_false) {
  return {LLVMBuildSelect(builder(mask), mask.ref, if_true.ref, if_false.ref, ""), mask.module};
}

Value fma(Value a, Value b, Value c) {
  meet(a, b);
  meet(a, c);
  meet(b, c);
  return intrinsic("llvm.fma", {a, b, c});
}

namespace {

// The number in every lane of a constant.
std::optional<double> splat_number(const Value& v) {
  std::optional<double> number;
  for (int i = 0; i < v.lanes(); ++i) {
    LLVMValueRef lane = v.lanes() == 1 || !LLVMIsConstant(v.ref)
                            ? v.ref
                            : LLVMGetAggregateElement(v.ref, static_cast<unsigned>(i));
    if (!lane || !LLVMIsAConstantFP(lane)) return std::nullopt;
    LLVMBool loses = false;
    double here = LLVMConstRealGetDouble(lane, &loses);
    if (number && *number != here) return std::nullopt;
    number = here;
  }
  return number;
}

struct Extremum {
  const char *with_sign, *without_sign;
  bool is_maximum;
};

// The machine instruction: b if one is NaN.
Value ordered_extremum(Value a, Value b, bool is_maximum) {
  return select(is_maximum ? greater(a, b) : less(a, b), a, b);
}

Value extremum(Value a, Value b, const Extremum& e) {
  meet(a, b);
  if (!is_float(a.dtype()))
    return intrinsic(is_signed(a.dtype()) ? e.with_sign : e.without_sign, {a, b});
  auto is_number = [](const Value& v) {
    std::optional<double> number = splat_number(v);
    return number && !std::isnan(*number);
  };
  if (is_number(a)) return ordered_extremum(a, b, e.is_maximum);
  if (is_number(b)) return ordered_extremum(b, a, e.is_maximum);
  // So that in a chain of reductions, a only waits for one instruction and a blend.
  return select(is_nan(b), b, ordered_extremum(b, a, e.is_maximum));
}

}  // namespace

Value minimum(Value a, Value b) {
  if (a.dtype() == DType::b1) return a & b;
  return extremum(a, b, {"llvm.smin", "llvm.umin", false});
}

Value maximum(Value a, Value b) {
  if (a.dtype() == DType::b1) return a | b;
  return extremum(a, b, {"llvm.smax", "llvm.umax", true});
}

Value abs(Value v) {
  if (is_float(v.dtype())) return intrinsic("llvm.fabs", {v});
  if (!counts_below_zero(v)) return v;
  return select(less(v, 0), -v, v);
}

Value copysign(Value magnitude, Value sign) {
  meet(magnitude, sign);
  return intrinsic("llvm.copysign", {magnitude, sign});
}

Value sqrt(Value v) { return intrinsic("llvm.sqrt", {v}); }
Value floor(Value v) { return intrinsic("llvm.floor", {v}); }
Value ceil(Value v) { return intrinsic("llvm.ceil", {v}); }
Value trunc(Value v) { return intrinsic("llvm.trunc", {v}); }
Value round_even(Value v) { return intrinsic("llvm.roundeven", {v}); }
Value popcount(Value v) { return intrinsic("llvm.ctpop", {v}); }

Value real_like(Value v, double number) { return v.module->real(number, v.type); }
Value integer_like(Value v, std::int64_t number) { return v.module->integer(number, v.type); }

// ---- conversions

namespace {

using BuildCast = LLVMValueRef (*)(LLVMBuilderRef, LLVMValueRef, LLVMTypeRef, const char*);

Value convert(Value v, DType to, BuildCast build) {
  ValueType type = {to, v.lanes()};
  return v.module->wrap(build(builder(v), v.ref, v.module->llvm_type(type), ""), type);
}

Value saturate(Value v, DType to) {
  ValueType type = {to, v.lanes()};
  LLVMTypeRef types[] = {v.module->llvm_type(type), v.module->llvm_type(v.type)};
  std::string_view name = is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
  return v.module->wrap(v.module->intrinsic(name, types, std::span(&v.ref, 1)), type);
}

Value to_float(Value v, DType to) {
  if (v.dtype() == DType::f32) return convert(v, to, LLVMBuildFPExt);
  if (v.dtype() == DType::f64) return convert(v, to, LLVMBuildFPTrunc);
  return convert(v, to, counts_below_zero(v) ? LLVMBuildSIToFP : LLVMBuildUIToFP);
}

Value to_integer(Value v, DType to) {
  if (is_float(v.dtype())) return saturate(v, to);
  int from = v.dtype() == DType::b1 ? 1 : bits(v.dtype());
  if (from > bits(to)) return convert(v, to, LLVMBuildTrunc);
  if (from == bits(to)) return v.module->wrap(v.ref, {to, v.lanes()});
  return convert(v, to, counts_below_zero(v) ? LLVMBuildSExt : LLVMBuildZExt);
}

// f64 to f32 so that a second rounding to a shorter format gives the same result as a single
// rounding: inexact results are truncated and end in a one (round to odd; Boldo, Melquiond 2008).
Value round_to_odd(Value v) {
  Value near = convert(v, DType::f32, LLVMBuildFPTrunc);
  Value back = convert(near, DType::f64, LLVMBuildFPExt);
  Value as_bits = bitcast(near, DType::i32);
  Value truncated = select(greater(abs(back), abs(v)), as_bits - 1, as_bits) | 1;
  Value is_exact = equal(back, v) | is_nan(v);
  return bitcast(select(is_exact, as_bits, truncated), DType::f32);
}

Value to_short_float(Value v, DType to) {
  bool fits_f32 = v.dtype() == DType::f32 || v.dtype() == DType::b1 || byte_size(v.dtype()) <= 2;
  Value wide = fits_f32                  ? (v.dtype() == DType::f32 ? v : to_float(v, DType::f32))
               : v.dtype() == DType::f64 ? round_to_odd(v)
                                         : round_to_odd(to_float(v, DType::f64));
  LLVMValueRef short_bits = detail::to_memory(to, wide);
  return detail::from_memory(*v.module, to, short_bits, v.lanes());
}

}  // namespace

Value cast(Value v, DType to) {
  if (register_dtype(to) != to) return to_short_float(v, to);
  if (v.dtype() == to) return v;
  if (to == DType::b1) return not_equal(v, like(v, 0));
  return is_float(to) ? to_float(v, to) : to_integer(v, to);
}

Value bitcast(Value v, DType to) {
  HONE_ASSERT(register_dtype(to) == to && to != DType::b1 && v.dtype() != DType::b1 &&
                  byte_size(to) == byte_size(v.dtype()),
              "bitcast of ", v.dtype(), " to ", to);
  return convert(v, to, LLVMBuildBitCast);
}

// ---- f16 and bf16 against f32, in their 16 bits

namespace detail {

namespace {

LLVMTypeRef half_type(const Module& m, int lanes) {
  LLVMTypeRef half = LLVMHalfTypeInContext(m.context());
  return lanes == 1 ? half : LLVMVectorType(half, static_cast<unsigned>(lanes));
}

LLVMValueRef f32_to_f16(const Value& v) {
  LLVMBuilderRef b = v.module->builder();
  LLVMValueRef half = LLVMBuildFPTrunc(b, v.ref, half_type(*v.module, v.lanes()), "");
  return LLVMBuildBitCast(b, half, v.module->memory_type(DType::f16, v.lanes()), "");
}

LLVMValueRef f32_to_bf16(const Value& v) {
  Value b = bitcast(v, DType::u32);
  Value last = (b >> 16) & 1;
  Value rounded = select(is_nan(v), like(b, 0x7fc00000), b + 0x7fff + last);
  return cast(rounded >> 16, DType::u16).ref;
}

}  // namespace

LLVMValueRef to_memory(DType dtype, const Value& v) {
  HONE_ASSERT(v.dtype() == register_dtype(dtype), v.dtype(), " stored as ", dtype);
  if (dtype == DType::f16) return f32_to_f16(v);
  if (dtype == DType::bf16) return f32_to_bf16(v);
  if (dtype == DType::b1) return cast(v, DType::u8).ref;
  return v.ref;
}

Value from_memory(Module& m, DType dtype, LLVMValueRef ref, int lanes) {
  LLVMBuilderRef b = m.builder();
  if (dtype == DType::f16) {
    LLVMValueRef half = LLVMBuildBitCast(b, ref, half_type(m, lanes), "");
    ValueType type = {DType::f32, lanes};
    return m.wrap(LLVMBuildFPExt(b, half, m.llvm_type(type), ""), type);
  }
  if (dtype == DType::bf16)
    return bitcast(cast(m.wrap(ref, {DType::u16, lanes}), DType::u32) << 16, DType::f32);
  if (dtype == DType::b1) return not_equal(m.wrap(ref, {DType::u8, lanes}), 0);
  return m.wrap(ref, {register_dtype(dtype), lanes});
}

}  // namespace detail

// ---- lanes

Value broadcast(Value v, int lanes) {
  if (v.lanes() == lanes) return v;
  HONE_ASSERT(v.lanes() == 1, "broadcast of ", v.lanes(), " lanes to ", lanes);
  Module& m = *v.module;
  ValueType type = {v.dtype(), lanes};
  if (LLVMIsConstant(v.ref)) {
    std::vector<LLVMValueRef> all(static_cast<std::size_t>(lanes), v.ref);
    return m.wrap(LLVMConstVector(all.data(), static_cast<unsigned>(lanes)), type);
  }
  LLVMTypeRef vector = m.llvm_type(type);
  LLVMValueRef at = m.integer(0, {DType::i32, 1}).ref;
  LLVMValueRef first = LLVMBuildInsertElement(m.builder(), LLVMGetPoison(vector), v.ref, at, "");
  LLVMValueRef zeros = m.zero({DType::i32, lanes}).ref;
  return m.wrap(LLVMBuildShuffleVector(m.builder(), first, LLVMGetPoison(vector), zeros, ""), type);
}

Value extract(Value v, int lane) { return extract(v, v.module->integer(lane)); }

Value extract(Value v, Value lane) {
  if (v.lanes() == 1) return v;
  return v.module->wrap(LLVMBuildExtractElement(builder(v), v.ref, lane.ref, ""), {v.dtype(), 1});
}

Value insert(Value v, Value scalar, int lane) {
  if (v.lanes() == 1) return scalar;
  HONE_ASSERT(scalar.type == (ValueType{v.dtype(), 1}), "insert of ", scalar.dtype());
  LLVMValueRef at = v.module->integer(lane, {DType::i32, 1}).ref;
  return same(v, LLVMBuildInsertElement(builder(v), v.ref, scalar.ref, at, ""));
}

Value permute(Value a, Value b, std::span<const int> lanes) {
  HONE_ASSERT(a.type == b.type && a.lanes() > 1, "shuffle of ", a.lanes(), " and ", b.lanes());
  Module& m = *a.module;
  if (lanes.size() == 1) {
    int i = lanes[0];
    return i < a.lanes() ? extract(a, std::max(i, 0)) : extract(b, i - a.lanes());
  }
  LLVMTypeRef i32 = m.llvm_type({DType::i32, 1});
  std::vector<LLVMValueRef> order;
  for (int i : lanes)
    order.push_back(i < 0 ? LLVMGetPoison(i32) : m.integer(i, {DType::i32, 1}).ref);
  LLVMValueRef mask = LLVMConstVector(order.data(), static_cast<unsigned>(order.size()));
  return m.wrap(LLVMBuildShuffleVector(m.builder(), a.ref, b.ref, mask, ""),
                {a.dtype(), static_cast<int>(lanes.size())});
}

Value slice_lanes(Value v, int first, int count) {
  HONE_ASSERT(first >= 0 && first + count <= v.lanes(), "lanes ", first, " to ", first + count);
  if (count == v.lanes()) return v;
  std::vector<int> order;
  for (int i = 0; i < count; ++i) order.push_back(first + i);
  return permute(v, v, order);
}

Value concat_lanes(Value low, Value high) {
  HONE_ASSERT(low.type == high.type, "concatenation of ", low.lanes(), " and ", high.lanes());
  if (low.lanes() == 1) {
    Value both = low.module->zero({low.dtype(), 2});
    return insert(insert(both, low, 0), high, 1);
  }
  std::vector<int> order;
  for (int i = 0; i < 2 * low.lanes(); ++i) order.push_back(i);
  return permute(low, high, order);
}

Value reduce(Value v, const std::function<Value(Value, Value)>& join) {
  HONE_ASSERT((v.lanes() & (v.lanes() - 1)) == 0, v.lanes(), " lanes are no power of two");
  for (int half = v.lanes() / 2; half >= 1; half /= 2)
    v = join(slice_lanes(v, 0, half), slice_lanes(v, half, half));
  return v;
}

Value any(Value mask) {
  if (mask.lanes() == 1) return mask;
  HONE_ASSERT(mask.dtype() == DType::b1, "any of ", mask.dtype());
  Module& m = *mask.module;
  LLVMTypeRef type = m.llvm_type(mask.type);
  LLVMValueRef one =
      m.intrinsic("llvm.vector.reduce.or", std::span(&type, 1), std::span(&mask.ref, 1));
  return m.wrap(one, {DType::b1, 1});
}

Value all(Value mask) { return ~any(~mask); }

}  // namespace hone::llvm
