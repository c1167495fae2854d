// A kernel as a CUDA C++ file with its launch parameters.
#pragma once

#include <string>

#include "backend/cuda/driver/code.h"
#include "kernel/kernel.h"

namespace hone::cuda {

struct Source {
  CodeHeader header;
  std::string text;
};

// The kernel is named kernel_symbol; the variant for unaligned addresses, unaligned_symbol. Throws
// UserError for an operation that cannot be written as CUDA C++.
Source source_of(const Kernel&);

}  // namespace hone::cuda
