// GLSL becomes SPIR-V, by glslang in this process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hone::vulkan {

// Of a compute shader. Arithmetic of floats is neither reordered nor fused beyond what the text
// says. May be used by several threads. Throws InternalError with glslang's messages.
std::vector<std::uint32_t> spirv_of(const std::string& glsl);
// As text of glslang, for people.
std::string disassembly(const std::vector<std::uint32_t>& spirv);

}  // namespace hone::vulkan
