// GLSL becomes SPIR-V, by glslang in this process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace hone::vulkan {

inline constexpr std::size_t first_instruction = 5;  // behind the header

// visit(number of the instruction, place of its first word)
template <class Visit>
void for_each_instruction(const std::vector<std::uint32_t>& spirv, Visit&& visit) {
  for (std::size_t at = first_instruction; at < spirv.size();) {
    const std::uint32_t words = spirv[at] >> 16;
    HONE_ASSERT(words > 0 && at + words <= spirv.size(), "SPIR-V is cut at word ", at);
    visit(spirv[at] & 0xffff, at);
    at += words;
  }
}

// Of a compute shader. Arithmetic of floats is neither reordered nor fused beyond what the text
// says. May be used by several threads. Throws InternalError with glslang's messages.
std::vector<std::uint32_t> spirv_of(const std::string& glsl);
// As text of glslang, for people.
std::string disassembly(const std::vector<std::uint32_t>& spirv);

}  // namespace hone::vulkan
