// Finds rows and activations written as smaller operations and replaces them by the composites that
// groups take whole.
#pragma once

#include <span>

#include "ir/function.h"
#include "ir/pattern.h"
#include "pass/rewrite.h"

namespace hone {

std::span<const Rule> raise_rules();

// Expects a simplified function.
Function raise(const Function&, RuleLog* = nullptr);

}  // namespace hone
