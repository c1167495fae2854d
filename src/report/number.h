// Numbers as a page needs them. Not a formatter: units belong to the page.
#pragma once

#include "base/json.h"
#include "compile/stats.h"
#include "ref/evaluate.h"

namespace hone {

// With five digits, so that a report is not mostly digits of noise.
Json rounded(double);
Json interval(const Interval&);  // [median, low, high]
// The value of an expression, null when the sizes do not say.
Json known_size(const Dim&, const Sizing&);

}  // namespace hone
