// Neighbouring elements in one access, in GLSL.
#pragma once

#include <span>
#include <string>

#include "codegen/c/text.h"

namespace hone::c {

// The types $T_x$N of these vectors, and functions that read and write them. They use words of 4, 8
// or 16 bytes where the specialisation constant 0 says that all operands begin at multiples of 16.
// `of_words`: also those between vectors and words of 16 bytes.
std::string glsl_vectors(std::span<const VectorType>, bool of_words);

}  // namespace hone::c
