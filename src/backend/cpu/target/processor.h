// The machine that kernels are sized and compiled for, by the name of an instruction set. Not the
// machine this process runs on.
#pragma once

#include <string_view>

#include "codegen/llvm/target_spec.h"
#include "target/target_info.h"

namespace hone::cpu {

// For "x86-64-v3" or "x86-64-v4"; throws UserError for other names.
TargetInfo target_info(std::string_view isa);

// For the same names or "native"; throws UserError for other names. "native" is the higher of the
// two that allowed_isa() includes, tuned for this processor; its code still runs on every machine
// of that level.
llvm::TargetSpec target_spec(std::string_view isa);

}  // namespace hone::cpu
