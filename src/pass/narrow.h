// Narrows the bounds of sizes by known facts, and replaces sizes with only one possible value by
// numbers. Changes parameter types, so it runs before the passes.
#pragma once

#include <span>

#include "ir/function.h"

namespace hone {

struct SizeFact {
  enum class Kind : std::uint8_t { equal, not_equal, less_equal, greater };
  Kind kind = Kind::equal;
  Dim a = 0, b = 0;
};

// The function specialized to sizes that satisfy the facts and its own checks.
Function narrow(const Function&, std::span<const SizeFact> facts);

}  // namespace hone
