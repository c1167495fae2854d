// The size symbols of an entry, sorted by name, and expressions over them.
#pragma once

#include <cstdint>
#include <span>

#include "plan/plan.h"

namespace hone {

// Value of a measured size that is not known yet.
inline constexpr std::int64_t not_known = -1;

// The symbols that an entry's inputs determine; and these together with the measured ones. Sorted
// by name.
Dims input_symbols(const PlanEntry&);
Dims all_symbols(const PlanEntry&);
// Value of an expression over symbols that are sorted by name.
std::int64_t evaluate(const Dim&, std::span<const Dim> symbols,
                      std::span<const std::int64_t> values);

}  // namespace hone
