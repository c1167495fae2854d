// Finds rows and activations that are spelled in smaller operations and makes them the composites
// that groups take whole.
#pragma once

#include <span>

#include "ir/function.h"
#include "ir/pattern.h"
#include "pass/rewrite.h"

namespace hone {

std::span<const Rule> raise_rules();

// Expects what simplify leaves.
Function raise(const Function&, RuleLog* = nullptr);

}  // namespace hone
