// Compiles GLSL to SPIR-V with glslang, in this process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace hone::vulkan {

inline constexpr std::size_t first_instruction = 5;  // after the header

// Calls visit(opcode, index of the instruction's first word).
template <class Visit>
void for_each_instruction(const std::vector<std::uint32_t>& spirv, Visit&& visit) {
  for (std::size_t at = first_instruction; at < spirv.size();) {
    const std::uint32_t words = spirv[at] >> 16;
    HONE_ASSERT(words > 0 && at + words <= spirv.size(), "SPIR-V is cut at word ", at);
    visit(spirv[at] & 0xffff, at);
    at += words;
  }
}

// For a compute shader. Float arithmetic is neither reordered nor fused beyond what the source
// says. Thread-safe. Throws InternalError with glslang's messages.
std::vector<std::uint32_t> spirv_of(const std::string& glsl);
// Human-readable text from glslang.
std::string disassembly(const std::vector<std::uint32_t>& spirv);

}  // namespace hone::vulkan
