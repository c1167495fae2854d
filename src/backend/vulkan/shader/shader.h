// A compiled kernel as both halves of the backend know it: this header, then SPIR-V, then SPIR-V
// for devices whose subgroups join no numbers, where that is another one.
#pragma once

#include <cstdint>
#include <string_view>

#include "backend/vulkan/driver/machine.h"

namespace hone::vulkan {

// What kernels are compiled for: Vulkan 1.2 with addresses of buffers, scalar block layout and
// timeline semaphores, and how large a group of threads may be. What else a shader needs stands in
// its SPIR-V as capabilities.
struct Form {
  std::string_view name;      // Binary::target
  std::uint32_t threads;      // of a group
  std::uint32_t group_bytes;  // that a device must have for a group
  std::uint32_t kept_bytes;   // of them for joining numbers of the threads
  bool has_matrices = false;  // that subgroups of 32 multiply

  bool fits(const Adapter& a) const {
    return a.limits.maxComputeWorkGroupInvocations >= threads &&
           a.limits.maxComputeWorkGroupSize[0] >= threads &&
           a.limits.maxComputeSharedMemorySize >= group_bytes &&
           (!has_matrices || a.multiplies_matrices);
  }
};
// Better ones are later. What nearly every device has, then what GPUs for desks and servers have,
// then those of them that multiply cooperative matrices.
inline constexpr Form forms[] = {{"vulkan1.2", 256, 16 << 10, 2 << 10},
                                 {"vulkan1.2-large", 1024, 32 << 10, 8 << 10},
                                 {"vulkan1.3-matrices", 1024, 48 << 10, 8 << 10, true}};

// The best form of a device.
inline const Form& form_of(const Adapter& a) {
  const Form* best = &forms[0];
  for (const Form& f : forms)
    if (f.fits(a)) best = &f;
  return *best;
}

// Little-endian, as the machines that Vulkan runs on.
struct ShaderHeader {
  static constexpr std::uint32_t expected_magic = 0x33766b68;

  std::uint32_t magic = expected_magic;
  std::uint32_t code_words = 0;  // of 4 bytes, behind this header
  // Arguments of 8 bytes: addresses of the operands, sizes, with scratch its address and its bytes
  // for one thread. More than `most_pushed` lie in memory, and their address is pushed.
  std::uint32_t operands = 0, sizes = 0, uses_scratch = 0;
  std::uint32_t threads = 1;  // of a group
  // Of all operands; others need the specialisation constant 0 to be false. 1: there is none.
  std::uint32_t alignment = 1;
  std::uint32_t plain_words = 0;  // of 4 bytes, behind the others
  std::uint32_t subgroup = 0;     // threads that must be in each subgroup; 0: any number

  std::uint32_t arguments() const { return operands + sizes + (uses_scratch ? 2 : 0); }
};
inline constexpr std::uint32_t most_pushed = 16;

}  // namespace hone::vulkan
