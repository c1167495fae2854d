// Kernels as compute shaders in GLSL: memory is reached by addresses, so no buffer is bound and
// none is too large.
#pragma once

#include <string>

#include "codegen/c/dialect.h"
#include "kernel/kernel.h"

namespace hone::c {

extern const Dialect glsl;

// Matrices are written as GL_NV_cooperative_matrix has them, where a left operand, a right one and
// sums are one type. Here the number of their rows tells them apart: it is one of these
// specialisation constants. Of a left operand, a right one, of sums.
inline constexpr int matrix_rows[] = {100, 101, 102};

struct Shader {
  std::string text;
  // For devices whose threads do not join numbers in step; empty: the text is for all.
  std::string plain_text;
  // Reads and writes vectors; the specialisation constant 0 must be false where an operand does not
  // begin at a multiple of 16 bytes.
  bool uses_vectors = false;
  // What is pushed, or lies at the address that is pushed when it has more words of 8 bytes than
  // `most_pushed`: the operands' addresses, the sizes; with scratch its address and its bytes for
  // one thread.
  int words = 0;
  bool uses_scratch = false;
  bool uses_matrices = false;  // of subgroups of 32 threads, all of them there
  static constexpr int most_pushed = 16;
};

// Throws UserError for a kernel that GLSL has no words for.
Shader shader(const Kernel&);

}  // namespace hone::c
