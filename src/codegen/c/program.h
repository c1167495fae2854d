// A plan as C: a header, a source, its weights, a CMake file and an example that calls it. The
// source needs only libc and libm, does not allocate and has no mutable globals: one model may run
// in many threads, each with its own arena.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "plan/plan.h"

namespace hone::c {

struct ProgramOptions {
  std::string name;            // of functions and files; converted to an identifier
  int vector_bits = 256;       // vector size that the kernels' blocks were chosen for
  bool embed_weights = false;  // weights also as a C array
};

struct ProgramFile {
  std::string name;
  std::string text;
};

struct Program {
  std::string name;
  std::vector<ProgramFile> files;
  std::vector<std::byte> weights;  // NAME.weights
  std::int64_t arena_bytes = 0;    // of one run, including scratch memory
  int kernels = 0;
};

// `kernels` are those of Plan::kernels, in order; the plan is prepared. Throws UserError that lists
// everything without a C form: sizes that are not fixed, library calls, host functions.
Program write_program(const Plan&, std::span<const Kernel> kernels, const ProgramOptions&);

}  // namespace hone::c
