// Small dtypes become their codes: values of u8 and i8, and casts integer arithmetic on them, so
// that a backend moves and reinterprets bytes and knows of no small dtype besides.
#pragma once

#include "ir/function.h"

namespace hone {

// Parameters and results keep their types, reinterpreted by bitcasts; bodies do not.
Function small_dtypes_as_codes(const Function&);

}  // namespace hone
