// How the updates of a scatter join what is there: what the type rules of all scatters share.
#pragma once

#include "ops/check.h"

namespace hone {

// Attribute kind: set, or how numbers join.
inline void expect_join(const Call& c) {
  if (word_attr(c, "kind", {"set", "add", "mul", "max", "min"}) != "set")
    expect_dtype(c, 0, Accept::numeric);
}

}  // namespace hone
