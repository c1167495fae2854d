// How the updates of a scatter are joined with existing elements, for the type rules of scatters.
#pragma once

#include "ops/check.h"

namespace hone {

// Checks attribute kind: set, or a way of joining numbers.
inline void expect_join(const Call& c) {
  if (word_attr(c, "kind", {"set", "add", "mul", "max", "min"}) != "set")
    expect_dtype(c, 0, Accept::numeric);
}

}  // namespace hone
