// The part of a function that may refuse a run because of its inputs, and what it demands of these.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/function.h"
#include "ref/evaluate.h"

namespace hone {

// Whether it may refuse a run.
bool may_refuse(const Function&);
// The nodes that may refuse a run, and what they need; also the data-dependent sizes, as results.
// The parameters and their order are kept.
Function refusing_part(const Function&);
// By parameter, whether the function reads its contents.
std::vector<bool> read_params(const Function&);

// Inclusive; empty if nothing is required.
using RequiredRange = std::optional<std::pair<std::int64_t, std::int64_t>>;
// By parameter, the range in which its integers must be, as far as operations that pass numbers on
// tell it.
std::vector<RequiredRange> required_ranges(const Function&, const Sizing&);

// By parameter, the fixed values that its elements are compared with, such as the categories of an
// encoder. They are values of the function.
std::vector<Values> compared_with(const Function&);
// Evaluates values that are the same in every run; empty if that fails.
std::vector<Array> evaluated(const Function&, const Values&, std::span<const Array> inputs);

}  // namespace hone
