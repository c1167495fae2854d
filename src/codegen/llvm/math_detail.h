// Shared by the math*.cpp files.
#pragma once

#include <functional>
#include <span>

#include "codegen/llvm/builder.h"

namespace hone::llvm::detail {

// c[0] + c[1] x + c[2] x^2 + ...
Value polynomial(Value x, std::span<const double> c);

Value fma(Value a, Value b, double c);
Value fma(Value a, double b, Value c);
Value fma(Value a, double b, double c);

// The nearer of x and the bound; NaN stays.
Value at_most(Value x, double bound);
Value at_least(Value x, double bound);

constexpr double log2_of_e = 1.44269504088896341;
constexpr double ln2 = 0.693147180559945309;
constexpr double ln2_high = 0.693147182464599609375, ln2_low = -1.904654323148236017e-09;
// Adding it leaves the nearest integer in the low bits of the mantissa.
constexpr double rounder = 12582912.0;  // 1.5 * 2^23
// exp(r) = 1 + r (c[0] + c[1] r + ...) for |r| <= ln 2 / 2
constexpr double exp_rest[] = {1.0,          0.49999994,    0.166665152,
                               0.0416682363, 0.00836938433, 0.00138247851};

// 2^n for -126 <= n <= 127.
Value power_of_two(Value n);
// v * 2^n for |n| <= 252, n integral and `integer` the same number.
Value scale(Value v, Value n, Value integer);

// ---- operations without a form in LLVM IR; f32

bool has_avx512(const Value&);
// With AVX-512. v 2^floor(n), rounded once, and n - floor(n), for every n.
Value scale_by_floor(Value v, Value n);
Value above_floor(Value n);
// With AVX-512. x minus the nearest multiple of 2^-bits, exactly.
Value beside_multiple(Value x, int bits);
// Lane i is entry index[i] mod entries.size() of a table: of 8 entries, with AVX-512 also 32.
Value look_up(std::span<const float> entries, Value index);

// `near` where |x| < limit or x is NaN, else `beyond`, which is rarely needed.
Value or_beyond(Value x, double limit, Value near, const std::function<Value()>& beyond);

// ---- piecewise functions, see math_pieces.cpp; f32; all except gelu and gelu_tanh need AVX-512

Value erf_in_pieces(Value x);
Value tanh_in_pieces(Value x);
Value sigmoid_in_pieces(Value x, Value (*beyond)(Value));
Value silu_in_pieces(Value x, Value (*beyond)(Value));
Value softplus_in_pieces(Value x, Value (*beyond)(Value));
Value gelu_in_pieces(Value x);
Value gelu_tanh_in_pieces(Value x);

// The named C function of the table for f64, `f` for f32.
Value for_f32(const char* name, Value x, Value (*f)(Value));

}  // namespace hone::llvm::detail
