// What the files of math share.
#pragma once

#include <span>

#include "codegen/llvm/math.h"

namespace hone::llvm::detail {

// c[0] + c[1] x + c[2] x^2 + ...
Value polynomial(Value x, std::span<const double> c);

Value fma(Value a, Value b, double c);
Value fma(Value a, double b, Value c);
Value fma(Value a, double b, double c);

// The nearer of x and the bound; NaN stays.
Value at_most(Value x, double bound);
Value at_least(Value x, double bound);

// The C function of the table for f64, `f` for f32.
Value for_f32(const char* name, Value x, Value (*f)(Value));

}  // namespace hone::llvm::detail
