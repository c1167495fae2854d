// Neighbouring elements in one access, in GLSL.
#pragma once

#include <span>
#include <string>

#include "codegen/c/text.h"

namespace hone::c {

// The types $T_x$N of these vectors, and functions that read and write them. They use words of 4, 8
// or 16 bytes if the specialisation constant 0 says that all operands are aligned to 16 bytes.
// `of_words`: also conversions between vectors and words of 16 bytes.
std::string glsl_vectors(std::span<const VectorType>, bool of_words);

}  // namespace hone::c
