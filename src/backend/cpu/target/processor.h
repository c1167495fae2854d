// What kernels are sized by and compiled for, by the name of an instruction set. Not what this
// process runs on.
#pragma once

#include <string_view>

#include "codegen/llvm/target_spec.h"
#include "target/target_info.h"

namespace hone::cpu {

// By "x86-64-v3" or "x86-64-v4"; throws UserError for another name.
TargetInfo target_info(std::string_view isa);

// By the same names or "native"; throws UserError for another one. "native" is the highest of the
// two that allowed_isa() has, tuned for this processor; its code still runs on every machine of
// that level.
llvm::TargetSpec target_spec(std::string_view isa);

}  // namespace hone::cpu
