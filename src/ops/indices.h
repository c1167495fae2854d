// Indices as numbers of i64: negative ones count from the back, and those of u64 beyond i64 stay
// what they are, outside of everything.
#pragma once

#include <limits>

#include "ops/common.h"
#include "ops/ops.h"

namespace hone {

inline std::int64_t index_number(DType t, std::int64_t n) {
  return t == DType::u64 && n < 0 ? std::numeric_limits<std::int64_t>::max() : n;
}

// The same of a value of a graph.
inline Value index_value(Value v) {
  if (v.dtype() == DType::u64)
    v = ops::minimum(v, integer_like(v, std::numeric_limits<std::int64_t>::max()));
  return cast_to(v, DType::i64);
}

}  // namespace hone
