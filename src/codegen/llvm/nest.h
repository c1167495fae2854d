// Renders the statements of kernels as LLVM IR. A lanes loop becomes full vectors and one masked
// vector. Does not choose order or layout.
#pragma once

#include <string_view>

#include "codegen/llvm/builder.h"
#include "kernel/kernel.h"

namespace hone::llvm {

// Adds the kernel to the module under this name.
void emit_kernel(Module&, const Kernel&, std::string_view name);

}  // namespace hone::llvm
