// Target descriptions for tests of kernels; they belong to no backend.
#pragma once

#include "target/target_info.h"

namespace hone {

inline TargetInfo with_vectors_of_256_bits() { return {.name = "256"}; }

inline TargetInfo with_vectors_of_512_bits() {
  return {.name = "512", .vector_bits = 512, .vector_registers = 32, .fma_gflops = 100};
}

}  // namespace hone
