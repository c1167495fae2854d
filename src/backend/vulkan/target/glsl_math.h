// GLSL helpers that replace functions of the C library.
#pragma once

#include <vector>

#include "codegen/c/dialect.h"

namespace hone::c {

const std::vector<Helper>& glsl_math_helpers();

}  // namespace hone::c
