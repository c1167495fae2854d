// The sizes that a run of a plan is for, in order of name, and expressions over them.
#pragma once

#include <cstdint>
#include <span>

#include "plan/plan.h"

namespace hone {

// Of a size that data decides later.
inline constexpr std::int64_t not_known = -1;

// The sizes that a plan's inputs decide, then those that data decides too; in order of name.
Dims input_symbols(const Plan&);
Dims all_symbols(const Plan&);
// Value of an expression over symbols in order of name, whose values are given.
std::int64_t evaluate(const Dim&, std::span<const Dim> symbols,
                      std::span<const std::int64_t> values);

}  // namespace hone
