#include "backend/vulkan/target/spirv.h"

#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>
#include <glslang/SPIRV/disassemble.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/error.h"

namespace hone::vulkan {

namespace {

// Opcodes of the SPIR-V specification.
constexpr std::uint32_t op_decorate = 71, op_member_decorate = 72, op_type_void = 19,
                        no_contraction = 42;
constexpr std::uint32_t float_arithmetic[] = {127, 129, 131, 133, 136};  // negate + - * /
constexpr std::uint32_t first_float_comparison = 180, last_float_comparison = 191;

// Without this decoration a driver may contract and reorder arithmetic that kernels' polynomials
// rely on: x + c - c becomes x, and a select by comparison becomes a maximum, which loses NaN.
void decorate_as_exact(std::vector<std::uint32_t>& spirv) {
  std::vector<std::uint32_t> decorations;
  std::size_t place = 0;
  for_each_instruction(spirv, [&](std::uint32_t op, std::size_t at) {
    const bool is_annotation = op == op_decorate || op == op_member_decorate;
    if (place == 0 && (is_annotation || op == op_type_void)) place = at;
    const bool is_exact = std::ranges::find(float_arithmetic, op) != std::end(float_arithmetic) ||
                          (op >= first_float_comparison && op <= last_float_comparison);
    if (!is_exact) return;
    decorations.insert(decorations.end(), {3u << 16 | op_decorate, spirv[at + 2], no_contraction});
  });
  spirv.insert(spirv.begin() + static_cast<std::ptrdiff_t>(place), decorations.begin(),
               decorations.end());
}

// Once per process; glslang counts its users.
void start_glslang() {
  static const bool is_started = glslang::InitializeProcess();
  HONE_ASSERT(is_started, "glslang does not start");
}

}  // namespace

std::vector<std::uint32_t> spirv_of(const std::string& glsl) {
  start_glslang();
  glslang::TShader shader(EShLangCompute);
  const char* text = glsl.c_str();
  shader.setStrings(&text, 1);
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 100);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_2);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_5);
  const auto messages = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules);
  if (!shader.parse(GetDefaultResources(), 460, false, messages))
    throw InternalError("glslang refuses a kernel: ", shader.getInfoLog(), "\n", glsl);
  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(messages))
    throw InternalError("glslang does not link a kernel: ", program.getInfoLog(), "\n", glsl);
  std::vector<std::uint32_t> out;
  glslang::SpvOptions options;
  options.disableOptimizer = true;
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), out, &options);
  decorate_as_exact(out);
  return out;
}

std::string disassembly(const std::vector<std::uint32_t>& spirv) {
  std::ostringstream out;
  spv::Disassemble(out, spirv);
  return out.str();
}

}  // namespace hone::vulkan
