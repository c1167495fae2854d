// Instructions for real functions without a form in LLVM IR.
#include <llvm-c/Core.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "codegen/llvm/math_detail.h"

namespace hone::llvm {

namespace detail {

namespace {

// Runs f on registers of `least` lanes or more that together hold the operands.
Value by_register(Value a, Value b, int least, const std::function<Value(Value, Value)>& f) {
  const int lanes = a.lanes(), most = a.module->target().lanes();
  const bool is_power = (lanes & (lanes - 1)) == 0;
  if (is_power && lanes >= least && lanes <= most) return f(a, b);
  if (lanes > most && lanes % 2 == 0) {
    const int half = lanes / 2;
    return concat_lanes(
        by_register(slice_lanes(a, 0, half), slice_lanes(b, 0, half), least, f),
        by_register(slice_lanes(a, half, half), slice_lanes(b, half, half), least, f));
  }
  HONE_ASSERT(lanes < most, lanes, " lanes");
  int wide = least;
  while (wide < lanes) wide *= 2;
  std::vector<int> order(static_cast<std::size_t>(wide), -1);
  for (int i = 0; i < lanes; ++i) order[static_cast<std::size_t>(i)] = i;
  auto pad = [&](Value v) {
    if (lanes == 1) return insert(v.module->zero({v.dtype(), wide}), v, 0);
    return permute(v, v, order);
  };
  Value out = f(pad(a), pad(b));
  return lanes == 1 ? extract(out, 0) : slice_lanes(out, 0, lanes);
}

constexpr int least_lanes = 4;

LLVMValueRef number(Module& m, std::int64_t n) { return m.integer(n, {DType::i32, 1}).ref; }

// "llvm.x86.avx512.NAME.BITS" of the operands, zeros, the mask of all lanes and, in the widest
// form, the current rounding mode.
Value masked(std::string_view name, const Value& like, std::vector<LLVMValueRef> in,
             bool has_rounding) {
  Module& m = *like.module;
  in.push_back(m.zero(like.type).ref);
  in.push_back(m.integer(-1, {like.lanes() == 16 ? DType::u16 : DType::u8, 1}).ref);
  if (has_rounding && like.lanes() == 16) in.push_back(number(m, 4));
  return m.wrap(m.intrinsic(cat("llvm.x86.avx512.", name, ".", 32 * like.lanes()), {}, in),
                like.type);
}

// x minus x rounded to a multiple of 2^-bits; `mode` 0 rounds to nearest, 1 down.
Value reduced(Value x, int bits, int mode) {
  constexpr int quiet = 8;
  return by_register(x, x, least_lanes, [&](Value v, Value) {
    return masked("mask.reduce.ps", v, {v.ref, number(*v.module, bits << 4 | quiet | mode)}, true);
  });
}

// 1 / d with a relative error below 2^-14.
Value estimate_reciprocal(Value d) {
  return by_register(d, d, least_lanes,
                     [](Value v, Value) { return masked("rcp14.ps", v, {v.ref}, false); });
}

Value constants(Module& m, std::span<const float> numbers) {
  std::vector<LLVMValueRef> all;
  for (float x : numbers) all.push_back(m.real(x).ref);
  return m.wrap(LLVMConstVector(all.data(), static_cast<unsigned>(all.size())),
                {DType::f32, static_cast<int>(numbers.size())});
}

}  // namespace

bool has_avx512(const Value& v) {
  return v.module->target().vector_bits == 512 && v.dtype() == DType::f32;
}

Value scale_by_floor(Value v, Value n) {
  return by_register(v, n, least_lanes, [](Value x, Value k) {
    return masked("mask.scalef.ps", x, {x.ref, k.ref}, true);
  });
}

Value above_floor(Value n) { return reduced(n, 0, 1); }
Value beside_multiple(Value x, int bits) { return reduced(x, bits, 0); }

Value power_of_two(Value n) { return bitcast((n + 127) << 23, DType::f32); }

// Two steps, because one could leave the normal range.
Value scale(Value v, Value n, Value integer) {
  if (has_avx512(v)) return scale_by_floor(v, n);
  Value half = integer >> 1;
  return v * power_of_two(half) * power_of_two(integer - half);
}

Value look_up(std::span<const float> entries, Value index) {
  Module& m = *index.module;
  const int lanes = m.target().lanes();
  const auto most = static_cast<std::size_t>(lanes);
  return by_register(index, index, lanes, [&](Value i, Value) {
    const ValueType type = {DType::f32, lanes};
    if (entries.size() == 2 * most) {
      LLVMValueRef in[] = {constants(m, entries.first(most)).ref, i.ref,
                           constants(m, entries.subspan(most)).ref};
      return m.wrap(m.intrinsic("llvm.x86.avx512.vpermi2var.ps.512", {}, in), type);
    }
    HONE_ASSERT(entries.size() == 8 && lanes == 8, "a table of ", entries.size());
    LLVMValueRef in[] = {constants(m, entries).ref, i.ref};
    return m.wrap(m.intrinsic("llvm.x86.avx2.permps", {}, in), type);
  });
}

}  // namespace detail

Value quotient(Value n, Value d) {
  if (!detail::has_avx512(d)) return n / d;
  Value r = detail::estimate_reciprocal(d);
  Value y = n * r;
  return fma(fma(-d, y, n), r, y);
}

}  // namespace hone::llvm
