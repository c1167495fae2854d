// The libraries that the steps of a plan call, and what runs where one of them is missing.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace hone {

// The names of the libraries that steps of this kind call: what stands before the first dot.
std::vector<std::string> libraries_of(const Variant&);

// Leaves out of `chosen`, which are numbers of variants, those that call a library that is missing
// and that another one with equal guards and an equal target replaces. A warning names the library
// and counts the groups. `why_missing` is asked once for each library; empty: it is there.
void leave_out_without_library(
    const Plan&, std::vector<std::uint32_t>& chosen,
    const std::function<std::string(const Variant&, std::string_view library)>& why_missing);

}  // namespace hone
