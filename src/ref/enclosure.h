// Bounds instead of numbers: for every element of a function's results, the interval in which each
// evaluation lies that docs/numbers.md allows. Says what rounding can explain, and nothing more:
// where a decision (a comparison, floor, sort, argmax, a cast to an integer) hangs on rounding, all
// its outcomes are inside. Slower than one evaluation by a small factor.
#pragma once

#include "ref/compare.h"
#include "ref/enclosure_value.h"
#include "ref/evaluate.h"

namespace hone {

// Throws as evaluate() does.
std::vector<Enclosure> enclose(const Function&, std::span<const Array> inputs);

// Whether every element lies inside; what nothing is known of counts as undecided.
Comparison accept(const Wide& got, const Enclosure&);
Comparison accept(const Array& got, const Enclosure&);

}  // namespace hone
