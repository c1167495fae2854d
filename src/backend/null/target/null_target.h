// Generates empty code, to measure the compiler itself on any machine.
#pragma once

#include <memory>

#include "codegen/target.h"

namespace hone::null {

inline constexpr std::string_view target_names[] = {"any"};

std::unique_ptr<Target> make_target(std::string_view);

}  // namespace hone::null
