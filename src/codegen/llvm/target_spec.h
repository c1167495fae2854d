// The machine that kernels are compiled for, in LLVM's terms. Filled in by the target.
#pragma once

#include <string>

namespace hone::llvm {

struct TargetSpec {
  std::string name;                 // Binary::target of the result
  std::string triple, data_layout;  // of LLVM's target
  std::string processor;            // determines the allowed instructions
  std::string tune;                 // the processor to schedule for; empty: the same one
  std::string features;             // additional features, in LLVM's form "+avx512vnni"
  int vector_bits = 256;

  // Elements of `bytes` bytes in one register.
  int lanes(int bytes = 4) const { return vector_bits / 8 / bytes; }
};

}  // namespace hone::llvm
