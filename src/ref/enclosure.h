// Bounds instead of numbers: for every element of a function's results, the interval that contains
// every evaluation allowed by docs/numbers.md. Covers only rounding: where a decision (a
// comparison, floor, sort, argmax, a cast to an integer) depends on rounding, all its outcomes are
// included. Slower than one evaluation by a small factor.
#pragma once

#include "ref/compare.h"
#include "ref/enclosure_value.h"
#include "ref/evaluate.h"

namespace hone {

// Throws as evaluate() does.
std::vector<Enclosure> enclose(const Function&, std::span<const Array> inputs);

// Whether every element is inside; elements with unknown bounds count as undecided.
Comparison accept(const Wide& got, const Enclosure&);
Comparison accept(const Array& got, const Enclosure&);

}  // namespace hone
