// Cooperative matrices: Debian 12's glslang emits NVIDIA's extension; devices support the
// equivalent Khronos extension.
#pragma once

#include <cstdint>
#include <vector>

namespace hone::vulkan {

// The same shader with SPV_KHR_cooperative_matrix in place of SPV_NV_cooperative_matrix. The use of
// a matrix follows from its number of rows, one of the specialisation constants c::matrix_rows,
// which become plain constants. Shaders without such matrices do not change.
std::vector<std::uint32_t> with_khronos_matrices(std::vector<std::uint32_t> spirv);

}  // namespace hone::vulkan
