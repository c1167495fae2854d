// The machine that CPU kernels are compiled for, as LLVM names it. Not what this process runs on.
#pragma once

#include <string>
#include <string_view>

namespace hone::llvm {

struct TargetSpec {
  std::string name;      // "x86-64-v3", "x86-64-v4" or "native"; Binary::target of what comes out
  std::string cpu;       // LLVM's -mcpu
  std::string features;  // LLVM's -mattr
  int vector_bits = 256;

  // Elements of `bytes` bytes in one register.
  int lanes(int bytes = 4) const { return vector_bits / 8 / bytes; }
};

// Throws UserError for a name that is none of the three. "native" becomes x86-64-v3 or -v4,
// whichever is the widest that this machine runs, tuned for its CPU; code for it runs on every
// machine of that level.
TargetSpec target_spec(std::string_view name);

}  // namespace hone::llvm
