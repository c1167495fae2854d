// The format of a compiled kernel, used by both halves of the backend: this header, then SPIR-V,
// then, if different, SPIR-V for devices without subgroup arithmetic.
#pragma once

#include <cstdint>
#include <string_view>

#include "backend/vulkan/driver/machine.h"

namespace hone::vulkan {

// What kernels are compiled for: Vulkan 1.2 with addresses of buffers, scalar block layout and
// timeline semaphores, and the maximum size of a group of threads. Other requirements of a shader
// are capabilities in its SPIR-V.
struct Form {
  std::string_view name;      // Binary::target
  std::uint32_t threads;      // per group
  std::uint32_t group_bytes;  // required memory per group
  std::uint32_t kept_bytes;   // of these, reserved for reductions
  bool has_matrices = false;
  std::uint32_t subgroup = 0;  // that kernels may require; 0: none

  bool fits(const Adapter& a) const {
    return a.limits.maxComputeWorkGroupInvocations >= threads &&
           a.limits.maxComputeWorkGroupSize[0] >= threads &&
           a.limits.maxComputeSharedMemorySize >= group_bytes &&
           (!has_matrices || a.multiplies_matrices) &&
           (subgroup == 0 ||
            (a.joins_in_subgroups && a.shuffles_in_subgroups && a.least_subgroup <= subgroup &&
             subgroup <= a.most_subgroup && threads / subgroup <= a.group_subgroups));
  }
};
// Better forms come later: nearly every device, then desktop and server GPUs, then those of them
// with subgroups of 32, then those with cooperative matrices.
inline constexpr Form forms[] = {{"vulkan1.2", 256, 16 << 10, 2 << 10},
                                 {"vulkan1.2-large", 1024, 32 << 10, 8 << 10},
                                 {"vulkan1.3-large", 1024, 32 << 10, 8 << 10, false, 32},
                                 {"vulkan1.3-matrices", 1024, 48 << 10, 8 << 10, true, 32}};

// The best form of a device.
inline const Form& form_of(const Adapter& a) {
  const Form* best = &forms[0];
  for (const Form& f : forms)
    if (f.fits(a)) best = &f;
  return *best;
}

// Little-endian, like the machines that Vulkan runs on.
struct ShaderHeader {
  static constexpr std::uint32_t expected_magic = 0x33766b68;

  std::uint32_t magic = expected_magic;
  std::uint32_t code_words = 0;  // of 4 bytes, after this header
  // 8-byte arguments: addresses of the operands, sizes; with scratch, its address and bytes per
  // thread. If more than `most_pushed`, they are stored in memory and their address is pushed.
  std::uint32_t operands = 0, sizes = 0, uses_scratch = 0;
  std::uint32_t threads = 1;  // per group
  // Required alignment of all operands; with less, specialisation constant 0 must be false. 1: no
  // requirement.
  std::uint32_t alignment = 1;
  std::uint32_t plain_words = 0;  // of 4 bytes, after the code_words
  std::uint32_t subgroup = 0;     // required subgroup size; 0: any

  std::uint32_t arguments() const { return operands + sizes + (uses_scratch ? 2 : 0); }
};
inline constexpr std::uint32_t most_pushed = 16;

}  // namespace hone::vulkan
