// Numbers for the page. Not a formatter: the page adds units.
#pragma once

#include "base/json.h"
#include "compile/stats.h"
#include "ref/evaluate.h"

namespace hone {

// Rounded to five digits, to leave out noise.
Json rounded(double);
Json interval(const Interval&);  // [median, low, high]
// The value of an expression; null when the sizes do not determine it.
Json known_size(const Dim&, const Sizing&);

}  // namespace hone
