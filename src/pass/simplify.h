// Algebra: rules that make a function smaller without changing what it computes. Does not evaluate
// constants; fold does.
#pragma once

#include <span>

#include "ir/function.h"
#include "ir/pattern.h"
#include "pass/rewrite.h"

namespace hone {

// Rules of all classes; simplify applies those of class exact and rounding.
std::span<const Rule> arithmetic_rules();
std::span<const Rule> movement_rules();
std::span<const Rule> contraction_rules();

Function simplify(const Function&, RuleLog* = nullptr);

}  // namespace hone
