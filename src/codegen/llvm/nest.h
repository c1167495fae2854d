// Renders loop nests, and the scalar expressions in the holes of skeletons, as LLVM IR. One loop of
// a nest becomes vectors: whole ones, then one with a mask. Decides nothing about order or layout.
#pragma once

#include <string_view>

#include "codegen/llvm/builder.h"
#include "codegen/llvm/skeleton.h"
#include "kernel/kernel.h"

namespace hone::llvm {

// Adds the kernel to the module under this name, whatever its body is.
void emit_kernel(Module&, const Kernel&, std::string_view name);

}  // namespace hone::llvm
