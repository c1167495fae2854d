// Converts indices to i64: negative ones count from the back; u64 indices beyond the i64 range stay
// out of range.
#pragma once

#include <limits>

#include "ops/common.h"
#include "ops/ops.h"

namespace hone {

inline std::int64_t index_number(DType t, std::int64_t n) {
  return t == DType::u64 && n < 0 ? std::numeric_limits<std::int64_t>::max() : n;
}

// The same for a graph value.
inline Value index_value(Value v) {
  if (v.dtype() == DType::u64)
    v = ops::minimum(v, integer_like(v, std::numeric_limits<std::int64_t>::max()));
  return cast_to(v, DType::i64);
}

}  // namespace hone
