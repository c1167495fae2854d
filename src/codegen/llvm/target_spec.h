// The machine that CPU kernels are compiled for, as LLVM names it. Not what this process runs on.
#pragma once

#include <string>
#include <string_view>

namespace hone::llvm {

struct TargetSpec {
  std::string name;      // "x86-64-v3" or "x86-64-v4": Binary::target of what comes out
  std::string cpu;       // LLVM's CPU; sets the instructions that may be used
  std::string tune;      // LLVM's CPU to schedule for; empty: that of `cpu`
  std::string features;  // further instructions, in LLVM's form "+avx512vnni"
  int vector_bits = 256;

  // Elements of `bytes` bytes in one register.
  int lanes(int bytes = 4) const { return vector_bits / 8 / bytes; }
};

// By "x86-64-v3", "x86-64-v4" or "native"; throws UserError for another name. "native" is the
// highest of the two that allowed_isa() has, tuned for this CPU; its code still runs on every
// machine of that level.
TargetSpec target_spec(std::string_view name);

}  // namespace hone::llvm
