// A kernel as a file of CUDA C++, and how it is launched.
#pragma once

#include <string>

#include "backend/cuda/driver/code.h"
#include "kernel/kernel.h"

namespace hone::cuda {

struct Source {
  CodeHeader header;
  std::string text;
};

// Its kernel is called kernel_symbol, the one for other addresses unaligned_symbol. Throws
// UserError for an operation that is not written as CUDA C++.
Source source_of(const Kernel&);

}  // namespace hone::cuda
