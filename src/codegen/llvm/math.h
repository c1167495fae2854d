// Real functions of f32 and f64 values with any number of lanes, as IR. f32: polynomials and
// quotients of our own, at most 4 units in the last place from the true value on every input,
// subnormal results included; f64: the C library, lane by lane. Special values as in C99 annex F.
#pragma once

#include "codegen/llvm/builder.h"
#include "ir/op.h"

namespace hone::llvm {

// The function that an operation on one real number is; null when it is none of these.
using RealFunction = Value (*)(Value);
RealFunction real_function(const Op&);

// For arguments that were rounded when they were computed, and may as well be rounded once more:
// within 1.75 units in the last place of exp(x (1 + d)), |d| <= 1.25 * 2^-24; cheaper than exp(x).
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
Value sign(Value);   // -1, 1, or x itself where it is a zero or NaN

// n / d to one unit in the last place, for quotients without special cases: d and 1/d are normal
// numbers. Cheaper than the division where the machine estimates reciprocals well.
Value quotient(Value n, Value d);

}  // namespace hone::llvm
