// Real functions of f32 and f64 values with any number of lanes, as IR. f32: our own polynomials
// and quotients, at most 4 units in the last place from the true value for every input, including
// subnormal results; f64: the C library, lane by lane. Special values as in C99 annex F.
#pragma once

#include "codegen/llvm/builder.h"
#include "ir/op.h"

namespace hone::llvm {

// The function for a unary real operation; null if there is none here.
using RealFunction = Value (*)(Value);
RealFunction real_function(const Op&);

// For arguments that are already rounded and may be rounded once more: within 1.75 units in the
// last place of exp(x (1 + d)), |d| <= 1.25 * 2^-24; cheaper than exp(x).
Value exp_of_rounded(Value);
Value expm1(Value);
Value log1p(Value);
Value pow(Value base, Value exponent);

Value sin(Value);
Value cos(Value);
Value tan(Value);
Value asin(Value);
Value acos(Value);
Value atan(Value);

Value sinh(Value);
Value cosh(Value);
Value asinh(Value);
Value acosh(Value);
Value atanh(Value);

Value fmod(Value dividend, Value divisor);
Value reciprocal(Value);
Value rsqrt(Value);  // reciprocal(sqrt(x))
Value sign(Value);   // -1, 1, or x itself if it is a zero or NaN

// n / d to one unit in the last place, without special cases: d and 1/d must be normal numbers.
// Cheaper than division on machines with good reciprocal estimates.
Value quotient(Value n, Value d);

}  // namespace hone::llvm
