// What is known about sizes makes their bounds narrower, and sizes that can have one value only
// become numbers. Changes parameter types, so it runs before the passes.
#pragma once

#include <span>

#include "ir/function.h"

namespace hone {

struct SizeFact {
  enum class Kind : std::uint8_t { equal, not_equal, less_equal, greater };
  Kind kind = Kind::equal;
  Dim a = 0, b = 0;
};

// The function for sizes of which the facts, and its own checks, hold.
Function narrow(const Function&, std::span<const SizeFact> facts);

}  // namespace hone
