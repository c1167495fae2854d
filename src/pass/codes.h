// Replaces small dtypes by their codes, which are u8 or i8 values, and casts by integer arithmetic
// on them. A backend then only moves and reinterprets bytes and needs no other support for small
// dtypes.
#pragma once

#include "ir/function.h"

namespace hone {

// Parameters and results keep their types, reinterpreted by bitcasts; bodies do not.
Function small_dtypes_as_codes(const Function&);

}  // namespace hone
