// The libraries that the steps of a plan call, and the variants that run when one is missing.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace hone {

// The names of the libraries that the variant's library steps call: the part before the first dot.
std::vector<std::string> libraries_of(const Variant&);

// Removes from `chosen` (numbers of variants of the named plan) each variant that calls a missing
// library and can be replaced by another with equal guards and target. A warning names the library
// and the number of groups. `why_missing` is called once per library; it returns an empty string if
// the library is there.
void leave_out_without_library(
    std::string_view plan, std::span<const Variant>, std::vector<std::uint32_t>& chosen,
    const std::function<std::string(const Variant&, std::string_view library)>& why_missing);

}  // namespace hone
