// Kernels as compute shaders in GLSL: memory is accessed by address, so no buffers are bound and
// buffer size is not limited.
#pragma once

#include <string>

#include "codegen/c/dialect.h"
#include "kernel/kernel.h"

namespace hone::c {

extern const Dialect glsl;

// Matrices use GL_NV_cooperative_matrix, where left operands, right operands and sums have one
// type. The number of rows distinguishes them: it is one of these specialisation constants, for
// left operands, right operands and sums.
inline constexpr int matrix_rows[] = {100, 101, 102};

struct Shader {
  std::string text;
  // For devices without subgroup arithmetic; empty: `text` works on all devices.
  std::string plain_text;
  // Reads and writes vectors; the specialisation constant 0 must be false if an operand is not
  // aligned to 16 bytes.
  bool uses_vectors = false;
  // Number of 8-byte arguments: the operands' addresses, the sizes; with scratch its address and
  // its bytes per thread. Pushed, or if more than `most_pushed`, stored at the address that is
  // pushed.
  int words = 0;
  bool uses_scratch = false;
  int subgroup = 0;  // full subgroups of this size are required; 0: of any size
  static constexpr int most_pushed = 16;
};

// `subgroup`: a size of subgroups that it may require; 0: none, except for matrices, which require
// 32. Throws UserError for a kernel that GLSL cannot express.
Shader shader(const Kernel&, int subgroup = 0);

}  // namespace hone::c
