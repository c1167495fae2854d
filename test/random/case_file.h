// Cases as text, `.hone-ir`: comments (#), one line for each run ("run seed=7 extreme n=3"), the
// function.
#pragma once

#include <string>
#include <string_view>

#include "test/random/generate.h"

namespace hone::fuzz {

std::string case_text(const Case&, std::string_view comment);
// Throws UserError.
Case parse_case(std::string_view text);

}  // namespace hone::fuzz
